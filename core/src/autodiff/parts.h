// Gradients of what is put together from parts of an axis, and taken apart into them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "autodiff/rules.h"

namespace plugrad::autodiff {

/// The elements of `a` in the box, looked for through the views that show them:
/// shrink(pad(shrink(x))) is one shrink of x.
Id cut(Step& step, Id a, std::vector<int64_t> box);

/// The first places of an axis.
struct Prefix {
  size_t axis;
  int64_t count;
};
/// Where exactly the condition of the step's Where holds, which is how a join chooses its parts.
std::optional<Prefix> prefix_of(Step& step);
/// A gradient of the places [begin, end) of an axis; it is 0 elsewhere.
Id flow_within(Step& step, size_t axis, int64_t begin, int64_t end);

/// The axis along which a Pad puts zeros beside its source, where that is one.
std::optional<size_t> padded_axis(const Graph& graph, Id id);
/// The sum of Pads of that kind, of one shape. Many that do not overlap are joined instead: then
/// an element is computed of its own part alone.
Id sum_of_parts(Context& context, const std::vector<Id>& pads);

}  // namespace plugrad::autodiff
