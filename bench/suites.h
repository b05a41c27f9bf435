// The measurements of `plugrad bench` and docs/performance.md: suites of named rows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace plugrad::bench {

class Peers;

struct Peer {
  std::string name;  ///< "OpenBLAS", "C", …
  double value;      ///< in the result's unit, measured alternately in the same run
};

struct Result {
  std::string name;  ///< "sgemm/512/threads:1"
  double value = 0;
  std::string unit;
  std::optional<Peer> peer = {};  ///< the fastest peer that the row is compared with
  bool higher_is_better = true;
  std::vector<Peer> peers = {};  ///< all measured peers
  int threads = 0;
  double flops = 0, bytes = 0,
         seconds = 0;       ///< of one call, for rows in the roofline
  uint64_t peak_bytes = 0;  ///< peak device memory; 0: none in this process

  /// plugrad relative to the peer: larger is better for every unit.
  double ratio() const { return higher_is_better ? value / peer->value : peer->value / value; }
};

/// Called with each result as soon as it is available.
using Report = std::function<void(const Result&)>;

struct Choice {
  std::vector<std::string> suites;  ///< empty: all
  std::string filter;               ///< name of a row, or a part of names
  int threads = 0;                  ///< only rows with this number of threads; 0: all
  /// ONNX files by name, for first calls: only their rows. Inputs are PATH without .onnx/INPUT.npy.
  std::map<std::string, std::string> files = {};
};

std::vector<std::string> suite_names();
/// The suites measured if none is named.
std::vector<std::string> usual_suite_names();
/// Names of all rows that would be measured on the default device, in order.
std::vector<std::string> row_names(const Choice& choice);
/// Measures the rows. Returns false if a row was dropped because its result was wrong.
bool run_rows(const Choice& choice, Peers& peers, const Report& report);
/// Processor, cores and memory.
std::string describe_machine();

}  // namespace plugrad::bench
