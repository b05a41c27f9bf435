// Which operators take tensors with axes of variable sizes (plugrad/jit.h).
#pragma once

#include <string_view>

namespace plugrad::onnx {

/// Whether the operator's function gives the right result for every size of such axes, or throws.
/// Those that read Tensor::size() or shape(), which have the maximum sizes, do not.
bool takes_variable_sizes(std::string_view op);

}  // namespace plugrad::onnx
