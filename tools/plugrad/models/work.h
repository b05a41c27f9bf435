// The amount of work in a call of a model, and the device that does it.
#pragma once

#include <cstdint>
#include <string>

#include "models/inputs.h"

namespace plugrad::tools {

struct ModelWork {
  std::int64_t multiply_adds = 0;  ///< of sums of products, such as convolutions
  std::size_t nodes = 0;           ///< that a call runs, with those of subgraphs and functions
  std::size_t nodes_of_host = 0;   ///< of these, the ones that the host computes while it records
  std::size_t kernels = 0;         ///< launches of a call on the device
  std::string device;
  std::string problem;  ///< why the device cannot run it; empty if it can
};

/// Of a call with the given inputs, and zeros of the declared shapes (shape_of) for others. Kernels are generated for the default
/// device, but neither compiled nor run, unless a shape or a branch depends on their results.
/// Errors: those of onnx::Model; User for inputs that are no tensors.
ModelWork work_of(const std::string& path, const GivenInputs& given);

}  // namespace plugrad::tools
