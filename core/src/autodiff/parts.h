// Gradients of joins of parts along an axis, and of slices.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "autodiff/rules.h"

namespace plugrad::autodiff {

/// The elements of `a` in the box, read through views: shrink(pad(shrink(x))) becomes one shrink of
/// x.
Id cut(Vjp& vjp, Id a, std::vector<int64_t> box);

/// The first `count` indices of an axis.
struct Prefix {
  size_t axis;
  int64_t count;
};
/// The indices for which the condition of the vjp's Where holds, if it has the form of a join.
std::optional<Prefix> prefix_of(Vjp& vjp);
/// A gradient for the indices [begin, end) of an axis; 0 elsewhere.
Id flow_within(Vjp& vjp, size_t axis, int64_t begin, int64_t end);

/// The axis along which a Pad adds zeros, if it is a single axis.
std::optional<size_t> padded_axis(const Graph& graph, Id id);
/// The sum of such Pads of one shape. Many Pads without overlap are joined instead: each element
/// then depends on its own part only.
Id sum_of_parts(Context& context, const std::vector<Id>& pads);

}  // namespace plugrad::autodiff
