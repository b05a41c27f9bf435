/// Host numbers: mixed lists, numbers next to tensors, the state of the random stream.
#pragma once

#include <cstdint>
#include <type_traits>

#include "plugrad/dtype.h"

namespace plugrad {

/// State of the random number generator: the next word is number `counter` of the stream of `seed`.
struct RandomState {
  uint64_t seed = 0, counter = 0;
  bool operator==(const RandomState&) const = default;
};

/// An element of a list that mixes integers and floats: {1, 2.5}.
struct MixedNumber {
  template <class T>
    requires std::is_arithmetic_v<T>
  constexpr MixedNumber(T number) : value(static_cast<double>(number)) {
    static_assert(sizeof(T) <= 4 || std::is_same_v<T, double>,
                  "in a list that mixes types an integer has at most 32 bits, which a double "
                  "holds: name the type, as in Tensor::from<double>({…})");
  }
  double value;
};

namespace detail {

/// A number next to a tensor, as wide as it can be.
struct LiteralNumber {
  DType dtype;  // Index, WeakFloat, Bool, or U64 for values beyond i64
  double real;
  int64_t integer;
};

template <class T>
constexpr LiteralNumber convert_literal(T value) {
  if constexpr (std::is_same_v<T, bool>)
    return {DType::Bool, 0.0, value};
  else if constexpr (std::is_floating_point_v<T>)
    return {DType::WeakFloat, value, 0};
  else  // a value beyond i64 has the bits of a negative number
    return {std::is_unsigned_v<T> && static_cast<int64_t>(value) < 0 ? DType::U64 : DType::Index,
            0.0, static_cast<int64_t>(value)};
}

}  // namespace detail
}  // namespace plugrad
