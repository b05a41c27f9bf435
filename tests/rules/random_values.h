// Random constants and values with a bias to edges, and equality in the sense of IEEE 754.
#pragma once

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "ir/graph.h"
#include "ir/range.h"
#include "ir/round.h"

namespace plugrad::testing {

class RandomValues {
 public:
  explicit RandomValues(unsigned seed) : random_(seed) {}

  int pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  template <class T, size_t N>
  T pick_of(const T (&items)[N]) {
    return items[pick(static_cast<int>(N))];
  }

  DType dtype() {
    const DType all[] = {DType::Bool, DType::I8,  DType::U8,   DType::I32,
                         DType::U32,  DType::I64, DType::U64,  DType::F16,
                         DType::F32,  DType::F64, DType::BF16, DType::Index};
    return pick_of(all);
  }

  /// Bits of a constant. Index stays small: index arithmetic does not overflow.
  uint64_t bits(DType dtype) {
    if (is_float(dtype)) return bits_of(float_value(dtype), dtype);
    if (dtype == DType::Index) return static_cast<uint64_t>(int64_t{pick(41)} - 12);
    return bits_of(int_value(dtype), dtype);
  }

  /// A value that the leaf of a graph can have: below its size for a range.
  uint64_t of(const Graph& g, Id leaf) {
    if (g[leaf].op != Op::Range) return bits(g[leaf].dtype);
    return static_cast<uint64_t>(pick(static_cast<int>(range_size(g, leaf))));
  }

 private:
  double float_value(DType dtype) {
    const double edges[] = {0.0, -0.0,  1.0,   -1.0, 0.5,   2.0,      -2.0,      3.0,
                            0.1, 1e-45, 65504, 1e38, -1e38, INFINITY, -INFINITY, NAN};
    if (pick(3) == 0) return round_float(static_cast<double>(pick(2001) - 1000) / 16, dtype);
    return round_float(pick_of(edges), dtype);
  }
  int64_t int_value(DType dtype) {
    const int bits = dtype == DType::Bool ? 1 : static_cast<int>(size_of(dtype)) * 8;
    const int64_t lowest =
        is_unsigned(dtype) ? 0 : std::numeric_limits<int64_t>::min() >> (64 - bits);
    const int64_t highest =
        static_cast<int64_t>(~uint64_t{0} >> (is_unsigned(dtype) ? 64 - bits : 65 - bits));
    switch (pick(8)) {
      case 0:
        return lowest + pick(2);
      case 1:
        return highest - pick(2);
      case 2:
        return static_cast<int64_t>(random_() | uint64_t{random_()} << 32);
      case 3:
        return int64_t{1} << pick(bits);
      default:
        return pick(20) - 6;
    }
  }
  std::mt19937 random_;
};

/// The same value; NaN is NaN whatever its bits.
inline bool same_value(DType dtype, uint64_t a, uint64_t b) {
  if (a == b) return true;
  return is_float(dtype) && std::isnan(std::bit_cast<double>(a)) &&
         std::isnan(std::bit_cast<double>(b));
}

inline bool both_zero(DType dtype, uint64_t a, uint64_t b) {
  return is_float(dtype) && std::bit_cast<double>(a) == 0 && std::bit_cast<double>(b) == 0;
}

}  // namespace plugrad::testing
