// The sine, which has a file of its own.
#pragma once

#include "ir/graph.h"

namespace plugrad::codegen {

/// Of a node of dtype F32 or F64, by Add, Sub, Mul, Trunc, Where, comparisons, casts, bitcasts,
/// shifts and integer arithmetic.
Id make_sin(Graph& g, Id x);

}  // namespace plugrad::codegen
