// Sizes that a model leaves open, from the options --size and --bounds.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plugrad/error.h"
#include "plugrad/onnx.h"

namespace plugrad::tools {

using Names = std::map<std::string, std::string>;
using NamedTensors = std::map<std::string, Tensor>;

/// The names that --size accepts: those of sizes, and axes such as "image.2".
std::vector<std::string> open_sizes(const std::vector<onnx::ValueInfo>& inputs);

/// The declared shape with these sizes of axes that the model leaves open, of which there must be one
/// for each. Errors: UsageError for a size that is no number, User for a tensor that this machine's
/// memory does not hold.
Shape shape_of(const onnx::ValueInfo& input, const Names& sizes);

/// `sizes`, with those that tensors of inputs have under a name: other inputs share them. Errors:
/// UsageError for a tensor of another size than `sizes` says.
Names sizes_with(const std::vector<onnx::ValueInfo>& inputs, const Names& sizes,
                 const NamedTensors& given);

/// The bounds of sizes from texts such as "1..512". Errors: UsageError for other texts.
onnx::SizeBounds bounds_of(const Names& texts);

/// Adds the sizes that are not there, for inputs that are not `given`: 1 for the first axis, which is
/// the batch in most models, and 64 for the others: strides of up to 64 divide it, and kernels stay
/// small enough for REFERENCE. A name has one size in all inputs. Returns what was added: "n=1,
/// image.2=64"; empty: nothing.
std::string assume_sizes(const std::vector<onnx::ValueInfo>& inputs, const NamedTensors& given,
                         Names& sizes);

/// Throws the error with the sizes that were assumed, of which it may be a consequence.
[[noreturn]] void throw_with_assumed(const Error& error, const std::string& assumed);

/// The result of `call`. Errors: those of `call`, with the sizes that were assumed.
template <class Call>
auto with_assumed_sizes(const std::string& assumed, Call call) {
  try {
    return call();
  } catch (const Error& error) {
    if (assumed.empty() || error.kind() == ErrorKind::Internal) throw;
    throw_with_assumed(error, assumed);
  }
}

/// Errors: UsageError for a name of the option --`option` that is not `known`.
void require_names(const char* option, const Names& given, const std::vector<std::string>& known);

}  // namespace plugrad::tools
