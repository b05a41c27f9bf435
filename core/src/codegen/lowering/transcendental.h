// exp2, log2, sin, division and square root from basic arithmetic, for devices that do not claim
// them.
#pragma once

#include "ir/graph.h"

namespace plugrad::codegen {

// Each takes a node of dtype F32 or F64 and gives one of the same dtype that uses only Add, Sub,
// Mul, FDiv, Trunc, Where, comparisons, casts, bitcasts, shifts and integer arithmetic. make_trunc
// does without Trunc.
Id make_exp2(Graph& g, Id x);
Id make_log2(Graph& g, Id x);
Id make_sin(Graph& g, Id x);
Id make_trunc(Graph& g, Id x);

// Quotient and square root of floats, correctly rounded, and the truncated quotient of i32 or u32
// (division.cpp).
Id make_fdiv(Graph& g, Id a, Id b);
Id make_sqrt(Graph& g, Id x);
Id make_idiv(Graph& g, Id a, Id b);

}  // namespace plugrad::codegen
