// The nodes of an ONNX file that each recorded kernel computes.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace plugrad::tools {

struct LaunchedKernel {
  size_t place = 0;   ///< from 1, by first launch: the same in every run
  std::string nodes;  ///< "conv (model.onnx:17), relu (model.onnx:18)"; empty: not known
};

/// By the kernel's number in the recording. An unreadable trace gives no nodes.
std::map<uint64_t, LaunchedKernel> launched_kernels(const std::string& trace,
                                                    const std::string& recording);

/// Launches in a recording, also in one that was cut off.
uint64_t launches_in(const std::string& recording);

}  // namespace plugrad::tools
