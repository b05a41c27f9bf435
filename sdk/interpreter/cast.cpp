// Casts between all pairs of dtypes, and bitcasts. docs/kernel-ir.md has the rules.
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "program.h"
#include "values.h"

namespace plugrad::sdk {
namespace {

// Rounds to odd: the last bit is set if bits were lost, so that a second rounding to a shorter
// format equals direct rounding.
double to_odd(uint64_t magnitude) {
  const int excess = static_cast<int>(std::bit_width(magnitude)) - 53;
  if (excess > 0) {
    const bool sticky = (magnitude & ((uint64_t{1} << excess) - 1)) != 0;
    magnitude = ((magnitude >> excess) | (sticky ? 1 : 0)) << excess;
  }
  return static_cast<double>(magnitude);
}

template <typename To, typename From>
To float_to_int(From value) {
  if (std::isnan(value)) return 0;
  // Both limits are powers of two, exact in every float format.
  const double upper = std::ldexp(1.0, std::numeric_limits<To>::digits);
  const double lower = std::is_signed_v<To> ? -upper : 0.0;
  const double integral = std::trunc(static_cast<double>(value));
  if (integral >= upper) return std::numeric_limits<To>::max();
  if (integral < lower) return std::numeric_limits<To>::min();
  return static_cast<To>(integral);
}

template <uint32_t To, typename From>
typename NumberOf<To>::Value int_to_float(From value) {
  if constexpr (To == PGR_DTYPE_F32 || To == PGR_DTYPE_F64) {
    return static_cast<typename NumberOf<To>::Value>(value);
  } else {
    const bool is_negative = value < 0;
    const uint64_t bits = static_cast<uint64_t>(static_cast<int64_t>(value));
    return is_negative ? -to_odd(0 - bits) : to_odd(bits);
  }
}

template <uint32_t From, uint32_t To>
uint64_t cast_one(uint64_t bits) {
  using Out = NumberOf<To>;
  const auto value = NumberOf<From>::get(bits);
  if constexpr (kIsBool<To>)
    return value != 0;
  else if constexpr (kIsFloat<From> && kIsInt<To>)
    return Out::put(float_to_int<typename Out::Value>(value));
  else if constexpr (kIsInt<From> && kIsFloat<To>)
    return Out::put(int_to_float<To>(value));
  else
    return Out::put(static_cast<typename Out::Value>(value));
}

template <uint32_t From, uint32_t To>
void run_cast(const Step& s, uint64_t* slots) {
  for (uint32_t i = 0; i < s.lanes; ++i)
    slots[s.dst + i] = cast_one<From, To>(slots[s.src[0] + i * s.stride[0]]);
}

constexpr uint32_t kCount = PGR_DTYPE_COUNT;

template <uint32_t From, uint32_t... To>
constexpr std::array<AluFn, kCount> row(std::integer_sequence<uint32_t, To...>) {
  return {nullptr, run_cast<From, To + 1>...};
}

template <uint32_t... From>
constexpr std::array<std::array<AluFn, kCount>, kCount> table(
    std::integer_sequence<uint32_t, From...>) {
  return {std::array<AluFn, kCount>{},
          row<From + 1>(std::make_integer_sequence<uint32_t, kCount - 1>())...};
}

constexpr auto kCasts = table(std::make_integer_sequence<uint32_t, kCount - 1>());

// Slots keep signed integers sign-extended, everything else zero-extended.
template <uint32_t To>
void run_bitcast(const Step& s, uint64_t* slots) {
  constexpr bool is_int = kIsInt<To>;
  for (uint32_t i = 0; i < s.lanes; ++i) {
    const uint64_t bits = slots[s.src[0] + i * s.stride[0]];
    if constexpr (is_int) {
      slots[s.dst + i] = NumberOf<To>::put(NumberOf<To>::get(bits));
    } else {
      constexpr uint32_t width = To == PGR_DTYPE_F64    ? 64
                                 : To == PGR_DTYPE_F32  ? 32
                                 : To <= PGR_DTYPE_BF16 ? 16
                                                        : 8;
      slots[s.dst + i] = bits & (~uint64_t{0} >> (64 - width));
    }
  }
}

template <uint32_t... To>
constexpr std::array<AluFn, kCount> bitcasts(std::integer_sequence<uint32_t, To...>) {
  return {nullptr, nullptr, run_bitcast<To + 2>...};
}

constexpr auto kBitcasts = bitcasts(std::make_integer_sequence<uint32_t, kCount - 2>());

}  // namespace

AluFn find_cast(uint32_t from, uint32_t to) {
  return from < kCount && to < kCount ? kCasts[from][to] : nullptr;
}

AluFn find_bitcast(uint32_t to) {
  return to < kCount ? kBitcasts[to] : nullptr;
}

}  // namespace plugrad::sdk
