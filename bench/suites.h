// The measurements behind `plugrad bench` and docs/performance.md.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace plugrad::bench {

struct Peer {
  std::string name;  ///< "OpenBLAS", "C read loop", …
  double value;      ///< in the unit of the result, measured in the same run, in turns with ours
};

struct Result {
  std::string name;  ///< "sgemm/512/threads:1"
  double value = 0;
  std::string unit;
  std::optional<Peer> peer = {};
  bool higher_is_better = true;

  /// Ours over the peer's, so that more is better in either unit.
  double ratio() const { return higher_is_better ? value / peer->value : peer->value / value; }
};

/// Receives each result when it is there.
using Report = std::function<void(const Result&)>;

std::vector<std::string> suite_names();
bool has_suite(const std::string& name);
/// Runs one suite on the default device.
void run_suite(const std::string& name, const Report& report);
/// Processor, cores, memory.
std::string describe_machine();

// The suites, a file each.
void run_gemm(const Report& report);
void run_conv(const Report& report);
void run_elementwise(const Report& report);
void run_framework(const Report& report);
void run_models(const Report& report);

/// Of the framework's suite: the host's checks around a device's calls.
void report_dispatch(const Report& report);

}  // namespace plugrad::bench
