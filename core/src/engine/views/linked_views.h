// Views: states that show elements of another state, their base. A write to a view goes to the
// elements of the base (tensor/write.h), and an assigned base gives all its views new nodes:
//   y = x[1:3], x.assign(v)   ->   node of y = Shrink(node of x)
// A view does not keep its base alive. Where a base dies before several of its views, a lost base
// (no tensor, perhaps no node) connects them; a single view becomes a value of its own.
#pragma once

#include <vector>

#include "engine/session.h"

namespace plugrad::engine {

/// A movement between a base and a view.
struct ViewStep {
  Op op;
  DType from, to;              // dtype of the source and of the result
  std::vector<int64_t> shape;  // of the source
  std::vector<int64_t> arg;    // of the node

  bool operator==(const ViewStep&) const = default;
};

/// The tensor of which the state shows elements; itself if it is no view.
const TensorState& outermost(const TensorState& state);
/// Whether a write would change a part of a leaf, which is refused while gradients are recorded.
bool is_part_of_leaf(const TensorState& view);

}  // namespace plugrad::engine
