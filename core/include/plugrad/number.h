/// Host numbers that are no plain arithmetic type: mixed lists, the state of the random stream.
#pragma once

#include <cstdint>
#include <type_traits>

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

}  // namespace plugrad
