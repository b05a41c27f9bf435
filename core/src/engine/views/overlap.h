// Decides whether two views of one base show a common element:
//   x.reshape(4, 2)[0], x.reshape(4, 2)[1]   ->   places 0 + i and 2 + i of x, i < 2: none
#pragma once

#include <span>

#include "engine/views/linked_views.h"

namespace plugrad::engine {

/// Whether movements `a` and `b` of one base, which both leave elements, may lead to the same one.
/// Exact where the places in the base, or in what both movements begin with, are sums of strides;
/// otherwise, and where a search takes too long, true.
bool may_overlap(std::span<const ViewStep> a, std::span<const ViewStep> b);

}  // namespace plugrad::engine
