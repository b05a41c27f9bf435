// Long sums of floats in parts: after so many terms the part is added to a total and begins anew,
// so that terms are added to numbers of their own size. The error of n terms is then that of a part
// and of n / part totals instead of that of n (pairwise summation with one level; Higham 1993).
#pragma once

#include <optional>
#include <span>

#include "ir/graph.h"

namespace plugrad::codegen {

/// Where parts begin in a nest of reduce loops.
struct SumParts {
  size_t loop = 0;   ///< number of the loop that a part runs through
  int64_t step = 0;  ///< how many of its iterations; 0: all
};

/// Of sums (Reduce nodes over `loops`, outermost first); nothing where they are short, or where
/// twice as many accumulators do not fit beside each other.
std::optional<SumParts> parts_of_sums(const Graph& g, std::span<const Id> loops,
                                      std::span<const Id> sums);

/// Whether the reduction is a sum that gains by parts.
bool is_float_sum(const Graph& g, Id reduce);

}  // namespace plugrad::codegen
