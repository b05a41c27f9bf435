// A computation measured against peers: one row of the tables.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace plugrad::bench {

struct Case {
  std::string name;  ///< "sgemm/512/threads:2"
  std::string kind;  ///< computation: "matmul", "conv2d", … (bench/rows/kinds.cpp, bench/peers)
  std::vector<std::vector<int64_t>> shapes;           ///< of the f32 inputs
  nlohmann::json options = nlohmann::json::object();  ///< "transpose", "stride", "padding", …
  int threads = 0;                                    ///< 0: all
  double flops = 0;                                   ///< multiply and add count as two
  double bytes = 0;                                   ///< minimum memory traffic
  std::string unit;                                   ///< "GFLOP/s", "GB/s", "ms" or "us"
  /// Peers for the comparison (the fastest counts); others are only reported.
  std::vector<std::string> judges;
  double tolerance = 1e-4;  ///< allowed difference, relative to the largest value
  double turn_seconds = 0.04;
  int calls = 1;                   ///< in a timed round; "us" are those of one
  bool is_processor_time = false;  ///< of all threads, instead of the time that passes
  int least_turns = 3;             ///< minimum rounds of a slow contender; 7 for others
  bool is_jitted = false;          ///< replayed instead of recorded at each call
  bool is_searched = false;        ///< schedules come from a search (BEAM), otherwise the heuristic

  /// Converts a duration to the unit.
  double value(double seconds) const {
    if (unit == "GFLOP/s") return flops / seconds * 1e-9;
    if (unit == "GB/s") return bytes / seconds * 1e-9;
    if (unit == "us") return seconds / calls * 1e6;
    return seconds * 1e3;
  }
  bool higher_is_better() const { return unit != "ms" && unit != "us"; }
};

/// The number of elements of a shape.
inline double count(const std::vector<int64_t>& shape) {
  double product = 1;
  for (int64_t size : shape) product *= static_cast<double>(size);
  return product;
}

std::vector<Case> gemm_cases();
std::vector<Case> conv_cases();
std::vector<Case> elementwise_cases();
std::vector<Case> model_cases();
std::vector<Case> network_cases();

}  // namespace plugrad::bench
