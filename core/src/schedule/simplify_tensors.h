// The parts of simplify_tensors.
#pragma once

#include <optional>

#include "schedule/scheduler_state.h"
#include "schedule/tensor_builder.h"

namespace plugrad::schedule {

struct SplitReduction {
  Id result;
  Id first = kNoId;  // the partial results, to be stored; kNoId: the reduction stays whole
};

/// Whether the sum of `x` over `axes` reads its operands repeatedly, as a matmul does, and has at
/// least 16 terms. Then the cost of storing its result is small.
bool is_long_product(TensorBuilder& build, Id x, const TensorBuilder::Dims& axes);

/// Reduces `x`, in two reductions in these cases:
///   at least 32768 elements with fewer results than 4 a thread: over equal contiguous chunks;
///   sums of columns, e.g. of channels, with too few columns for the threads to share;
///   sums of products with few results for their reads, e.g. the weight gradient of a convolution:
///   the chunks fit the cache and are read once for each register tile of results.
SplitReduction split_reduction(TensorBuilder& build, Op op, Id x, const TensorBuilder::Dims& axes,
                               const Options& options);

/// The axis `r` along which the reduction of `x` over `axes` stores its terms by an index
/// (indexed_sums.cpp); none where it does not, or where marking it gains nothing.
std::optional<size_t> indexed_axis(const Graph& graph, Shapes& shapes, Op op, Id x,
                                   std::span<const int64_t> axes);

/// Replaces chains of Wheres by one computation for all of their parts (join_parts.cpp). Returns by
/// id the node that replaces each node.
std::vector<Id> join_parts(SchedulerState& state, TensorBuilder& build);

}  // namespace plugrad::schedule
