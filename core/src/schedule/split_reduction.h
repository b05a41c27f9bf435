// Large reductions with few results, in two steps, so that every thread has work and what is read
// again is in a cache.
#pragma once

#include "schedule/schedule.h"
#include "schedule/tensor_builder.h"

namespace plugrad::schedule {

struct SplitReduction {
  Id result;
  Id first = kNoId;  // the partial results, to be stored; kNoId when the reduction stays whole
};

/// Whether the sum of `x` over `axes` reads its operands repeatedly, as a product of matrices does,
/// and has at least 16 terms. Then storing its result costs little.
bool is_long_product(TensorBuilder& build, Id x, const TensorBuilder::Dims& axes);

/// Reduces `x`. A reduction of at least 32768 elements into fewer results than 4 a thread becomes
/// one over equal contiguous chunks and one over their results. So do sums of columns, such as
/// those of channels, that are too few for threads to share them out and read memory in order. So
/// does a sum of products with few results for what it reads, the weight gradient of a convolution:
/// its chunks fit the cache, in which they are read once for each register tile of the results; one
/// thread gains by that as several do.
SplitReduction split_reduction(TensorBuilder& build, Op op, Id x, const TensorBuilder::Dims& axes,
                               const Options& options);

}  // namespace plugrad::schedule
