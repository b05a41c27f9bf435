// u32 from i32, for devices without arithmetic on it. Both are the same 32 bits.
#pragma once

#include "ir/graph.h"

namespace plugrad::codegen {

/// An op whose operands are u32 (for WHERE the chosen ones), on their bits as i32; `id` itself
/// where the op wants another way.
Id u32_in_i32(Graph& g, Id id);

/// Casts between u32 and the number dtypes: neither of `x` and `to` is bool.
Id cast_to_u32(Graph& g, Id x);
Id cast_from_u32(Graph& g, Id x, DType to);

}  // namespace plugrad::codegen
