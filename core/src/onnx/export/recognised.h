// Recognises sums, windows and reads by index that ONNX has as one operator.
#pragma once

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "autodiff/convolution.h"

namespace plugrad::onnx {

using autodiff::List;

/// Sum over axes of a * b. Each axis of the operands has the size of the product or 1.
struct MatMulNode {
  Id a = kNoId, b = kNoId;
  List batch{}, rows{}, columns{}, inner{};  // axes of both, of a, of b, and those that are summed
};

struct ConvNode {
  autodiff::Convolution convolution;
};

/// The largest element, or the sum of elements, of each window of the last axes.
struct PoolNode {
  Id image = kNoId;
  autodiff::Windows windows;
  bool is_max = false;
  List padding{};  // before and after each axis of the windows, by no element; empty for none
};

/// An operator of one value, in the value's shape.
struct UnaryNode {
  Id x = kNoId;
  std::string_view op;         // Relu or Clip
  double least = 0, most = 0;  // of Clip
};

/// values[…, indices, …] along `axis`; 0 for indices out of range. Values, and indices as
/// `index_sizes`, are of the reduction's rank, with size 1 on axes that they do not vary on.
struct GatherNode {
  Id values = kNoId, indices = kNoId;
  List index_sizes{};
  std::int64_t axis = 0, rows = 0;
};

using MatchedOperator =
    std::variant<std::monostate, MatMulNode, ConvNode, PoolNode, GatherNode, UnaryNode>;

/// The operator that computes the node; monostate where none is proved to.
MatchedOperator match_operator(autodiff::Context& context, Id node);

/// An operator of one value that computes the node, if one is proved to.
std::optional<UnaryNode> match_unary(autodiff::Context& context, Id node);

/// The node below Expand, which repeats its axes of size 1.
Id below_expand(const Graph& graph, Id node);

}  // namespace plugrad::onnx
