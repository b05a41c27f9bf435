// Derivatives: from a tensor graph to nodes of the same graph. Knows nodes only, no tensors.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/extents.h"
#include "ir/facts.h"

namespace plugrad::autodiff {

/// One call of a function that says its own derivative (Op::Function), as the walk meets it.
struct FunctionStep {
  struct Flow {
    Id node, gradient;  // of the node's shape
  };
  std::span<const Flow> outputs;  // those that the loss depends on
  std::vector<bool> wanted;       // by source: whether a target depends on it
};
/// What flows to sources 1, 2, … of the call's nodes, kNoId for nothing; may be shorter.
using FunctionGradient = std::function<std::vector<Id>(const FunctionStep&)>;

/// The graph and its facts, as the session keeps them.
struct Context {
  Graph& graph;
  Shapes& shapes;
  Devices& devices;
  FunctionGradient function = {};
  Extents* extents = nullptr;  // null: every axis is whole
};

/// d loss / d target for each target, in its shape and dtype; kNoId where the loss does not depend
/// on it. `seed` is the gradient of the loss itself (shape () stands for the same number
/// everywhere). One walk in descending order of ids; no recursion.
std::vector<Id> gradient(Context& context, Id loss, Id seed, std::span<const Id> targets);

}  // namespace plugrad::autodiff
