// f16, bf16 and the f8 formats from integer arithmetic, for devices that can store them but not
// convert them.
#pragma once

#include "ir/graph.h"

namespace plugrad::codegen {

/// The value of a small float as f32, exactly.
Id small_to_f32(Graph& g, Id x);
/// A number of another dtype as an f32 that is right up to its last bit, which is 1 where bits are
/// missing: rounding that to a smaller format is rounding the number itself.
Id to_odd_f32(Graph& g, Id x);
/// An f32 rounded to nearest even in a small float; overflow gives infinity (f8e4m3: NaN), NaN
/// stays NaN.
Id f32_to_small(Graph& g, Id x, DType dtype);

}  // namespace plugrad::codegen
