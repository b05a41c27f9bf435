// Movement of elements between arrays, and the output index of reductions. Lists are as in ops.def.
#pragma once

#include "ir/op.h"
#include "oracle/array.h"

namespace plugrad::oracle {

using List = std::span<const int64_t>;

Array permute(const Array& x, List order);
Array expand(const Array& x, List shape);
Array pad(const Array& x, List before_after);
Array shrink(const Array& x, List begin_end);
Array flip(const Array& x, List flipped);

/// For each element of `shape`, its index in `reduced`, whose reduced axes have size 1.
std::vector<size_t> places_when_reduced(List shape, List reduced);

/// The value that a reduction begins with, as bits of the dtype: 0, 1, or the lowest value. The sum
/// of floats is +0 if empty, else begins with -0, which changes no term.
uint64_t identity_of(Op op, DType dtype, bool is_empty);

}  // namespace plugrad::oracle
