// The number of a constant without rounding: 128 bits hold all whole numbers of 64 bits, their
// distances and their multiples.
#pragma once

#include <cmath>

#include "ir/facts.h"
#include "tensor/record.h"

namespace plugrad::tensor {

__extension__ using Int128 = __int128;

struct ExactNumber {
  bool is_whole = false;  // and less than 2^64 in size
  Int128 whole = 0;
  double real = 0;  // rounded
};

/// The number of a constant node.
inline ExactNumber exact_number(const Graph& g, Id node) {
  const DType dtype = g[node].dtype;
  const double real = const_float(g, node);
  if (is_float(dtype)) {
    const bool is_whole = std::trunc(real) == real && std::abs(real) < 0x1p64;
    return {is_whole, is_whole ? static_cast<Int128>(real) : 0, real};
  }
  const int64_t bits = const_int(g, node);
  return {true, dtype == DType::U64 ? Int128{static_cast<uint64_t>(bits)} : Int128{bits}, real};
}

/// Whether an integer dtype or bool holds the number; for floats, whether i64 does.
inline bool holds_exactly(DType dtype, Int128 number) {
  if (dtype == DType::U64) return number >= 0 && number <= UINT64_MAX;
  const auto low = static_cast<int64_t>(number);
  return low == number && (is_float(dtype) || holds(dtype, low));
}

}  // namespace plugrad::tensor
