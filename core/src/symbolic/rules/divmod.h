// Floor division and modulus of linear sums by a positive constant.
#pragma once

#include "symbolic/linear.h"

namespace plugrad {

/// A simpler node for FloorDiv or FloorMod `id` by a positive constant; none if there is none.
std::optional<Id> split_quotient(Graph& g, Id id, Bounds& bounds);

/// Merges x % n and n * (x // n), also in the forms that division leaves behind.
void recombine(Graph& g, Linear& sum);

}  // namespace plugrad
