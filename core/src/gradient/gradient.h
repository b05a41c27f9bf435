// Derivatives: from a tensor graph to nodes of the same graph. Knows nodes only, no tensors.
#pragma once

#include <span>
#include <vector>

#include "uop/facts.h"

namespace plugrad::autodiff {

/// The graph and its facts, as the session keeps them.
struct Context {
  Graph& graph;
  Shapes& shapes;
  Devices& devices;
};

/// d loss / d target for each target, in its shape and dtype; kNoId where the loss does not depend
/// on it. `seed` is the gradient of the loss itself (shape () stands for the same number
/// everywhere). One walk in descending order of ids; no recursion.
std::vector<Id> gradient(Context& context, Id loss, Id seed, std::span<const Id> targets);

}  // namespace plugrad::autodiff
