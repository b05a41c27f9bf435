// Derivatives: adds gradient nodes to a tensor graph. Knows nodes only, no tensors.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/extents.h"
#include "ir/facts.h"

namespace plugrad::autodiff {

/// One call of a function with its own derivative (Op::Function), as the walk meets it.
struct FunctionVjp {
  struct Flow {
    Id node, gradient;  // of the node's shape
  };
  std::span<const Flow> outputs;  // the outputs that the loss depends on
  std::vector<bool> wanted;       // by source: whether a target depends on it
};
/// Gradients of sources 1, 2, … of the call's nodes; kNoId for none; may be shorter.
using FunctionGradient = std::function<std::vector<Id>(const FunctionVjp&)>;

/// The graph and its facts, owned by the session.
struct Context {
  Graph& graph;
  Shapes& shapes;
  Devices& devices;
  FunctionGradient function = {};
  Extents* extents = nullptr;            // null: no variable sizes
  std::string_view caller = "gradient";  // for errors
  // Whether gradients flow to the node; empty: to those above targets.
  std::function<bool(Id)> is_tracked = {};
  // Called after the gradients of a node's sources were made: nodes from `first` on. For traces.
  std::function<void(Id node, Id first)> differentiated = {};
};

/// d loss / d target for each target, in its shape and dtype; kNoId if the loss does not depend on
/// it. `seed` is the gradient of the loss (shape (): the same number for all elements). One walk in
/// descending order of ids; no recursion. Errors: User if backward() of the loss, or of a part of
/// it, was called.
std::vector<Id> gradient(Context& context, Id loss, Id seed, std::span<const Id> targets);

}  // namespace plugrad::autodiff
