// Inputs of a model from its declaration and the options --size and --input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/sizes.h"
#include "plugrad/onnx.h"

namespace plugrad::tools {

/// The values and sizes of a model's inputs that --input and --size give.
struct GivenInputs {
  NamedTensors tensors;  ///< by input, on the default device, made without a kernel
  Names sizes;           ///< of all open axes but those of files: given, of files, or assumed
  std::string assumed;   ///< those that were assumed: "n=1, image.2=64"; empty: none
};

/// `given` has the file NAME.npy or the number of an input. Errors: UsageError for what is neither,
/// for numbers that an input of integers cannot have, and for a file of another size than `sizes`
/// says; User for a file that cannot be read, and for numbers of inputs that are no tensors.
GivenInputs given_inputs(const std::vector<onnx::ValueInfo>& inputs, const Names& sizes,
                         const Names& given);

/// All inputs: those that are given, else random floats from 0 to 1 and integers 0 or 1, the same for
/// a seed on every device. Errors: User for inputs that are no tensors; those of shape_of.
std::vector<Tensor> made_inputs(const std::vector<onnx::ValueInfo>& inputs,
                                const GivenInputs& given, uint64_t seed);

std::vector<std::string> names_of(const std::vector<onnx::ValueInfo>& values);

}  // namespace plugrad::tools
