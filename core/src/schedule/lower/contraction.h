// The kernels in which products and sums are rounded apart.
#pragma once

#include "ir/graph.h"

namespace plugrad::schedule {

/// Whether a fused multiply-add could change more than the last bits, in a kernel without products
/// of matrices: what is rounded to an integer may lie halfway between two, as sums of quantised
/// numbers often do (an addition may round a float whose bits are read); of a * b + c * d, which
/// product is fused depends on the order of recording.
bool must_not_contract(const Graph& kernel, Id sink);

}  // namespace plugrad::schedule
