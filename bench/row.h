// One measurement of a suite; it produces one or more rows.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/peers/peers.h"
#include "bench/suites.h"

namespace plugrad::bench {

struct Row {
  std::vector<std::string> names;
  int threads = 0;  ///< 0: independent of threads
  /// Returns false if a result was wrong.
  std::function<bool(Peers& peers, const Report& report)> run;
};

/// A row without a peer in another process.
inline Row reporting(std::vector<std::string> names, void (*measure)(const Report& report)) {
  return {std::move(names), 0, [measure](Peers&, const Report& report) {
            measure(report);
            return true;
          }};
}

// The suites for the default device.
std::vector<Row> gemm_rows();
std::vector<Row> conv_rows();
std::vector<Row> elementwise_rows();
std::vector<Row> framework_rows();
std::vector<Row> model_rows();
std::vector<Row> half_rows();       ///< small floats against f32
std::vector<Row> network_rows();    ///< one call of a whole network
std::vector<Row> step_rows();       ///< training steps of models that have peers
std::vector<Row> variation_rows();  ///< what differs in each call
std::vector<Row> cold_rows();       ///< first calls with an empty cache
/// The same of ONNX files, by name, with a summary.
std::vector<Row> cold_file_rows(const std::map<std::string, std::string>& files);
std::vector<Row> dispatch_rows();  ///< device calls against the plugin's own functions
Row beside_row();                  ///< copies overlapping kernels

}  // namespace plugrad::bench
