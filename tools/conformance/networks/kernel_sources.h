// The nodes of an ONNX file that each recorded kernel computes.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace plugrad::tools {

/// By the kernel's number in the recording: "conv (model.onnx:17), relu (model.onnx:18)". Kernels
/// that the trace does not have are missing. An unreadable trace gives none.
std::map<uint64_t, std::string> kernel_sources(const std::string& trace,
                                               const std::string& recording);

/// Launches in a recording, also in one that was cut off.
uint64_t launches_in(const std::string& recording);

}  // namespace plugrad::tools
