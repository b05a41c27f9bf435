// Evaluates an arithmetic op on single values: in double and rounded once to the dtype, or as exact
// integers.
#pragma once

#include <cstdint>
#include <span>

#include "ir/op.h"
#include "plugrad/dtype.h"

namespace plugrad::oracle {

/// Constant bits (graph.h) in and out. `source` is the dtype of the first source that is not a
/// condition. Errors: Unsupported for an op that is not arithmetic, or that does not take the
/// dtype.
uint64_t apply(Op op, DType dtype, DType source, std::span<const uint64_t> args);

/// Cast and Bitcast.
uint64_t cast_value(uint64_t bits, DType from, DType to);
uint64_t bitcast_value(uint64_t bits, DType from, DType to);

}  // namespace plugrad::oracle
