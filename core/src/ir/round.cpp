// Rounds small floats with one routine: three numbers describe each format.
#include "ir/round.h"

#include <bit>
#include <cmath>
#include <limits>

namespace plugrad {
namespace {

struct SmallFloat {
  int mantissa_bits, exponent_bias, exponent_bits;
  bool has_infinity;
};

constexpr SmallFloat small_float(DType dtype) {
  switch (dtype) {
    case DType::F16:
      return {10, 15, 5, true};
    case DType::BF16:
      return {7, 127, 8, true};
    case DType::F8E5M2:
      return {2, 15, 5, true};
    default:
      return {3, 7, 4, false};  // f8e4m3: all ones is NaN; no infinity
  }
}

double largest(const SmallFloat& f) {
  const int top_exponent = (1 << f.exponent_bits) - 1 - f.exponent_bias - (f.has_infinity ? 1 : 0);
  const double top_mantissa = 2.0 - std::ldexp(f.has_infinity ? 1.0 : 2.0, -f.mantissa_bits);
  return std::ldexp(top_mantissa, top_exponent);
}

double round_small(double value, const SmallFloat& f) {
  if (value == 0 || !std::isfinite(value)) {
    return std::isinf(value) && !f.has_infinity ? std::numeric_limits<double>::quiet_NaN() : value;
  }
  int exponent;
  std::frexp(value, &exponent);  // |value| in [2^(exponent-1), 2^exponent)
  const int lowest = 1 - f.exponent_bias;
  const int unit = std::max(exponent - 1, lowest) - f.mantissa_bits;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  if (std::fabs(rounded) <= largest(f)) return rounded;
  return f.has_infinity ? std::copysign(std::numeric_limits<double>::infinity(), value)
                        : std::numeric_limits<double>::quiet_NaN();
}

int bit_count(DType dtype) {
  return static_cast<int>(size_of(dtype)) * 8;
}

}  // namespace

int64_t round_int(int64_t value, DType dtype) {
  if (dtype == DType::Bool) return value != 0;
  const int bits = bit_count(dtype);
  if (bits == 0 || bits == 64) return value;
  const int unused = 64 - bits;
  const uint64_t top = static_cast<uint64_t>(value) << unused;
  return is_unsigned(dtype) ? static_cast<int64_t>(top >> unused)
                            : static_cast<int64_t>(top) >> unused;
}

double round_float(double value, DType dtype) {
  if (dtype == DType::F64 || dtype == DType::WeakFloat) return value;
  if (dtype == DType::F32) return static_cast<float>(value);
  return round_small(value, small_float(dtype));
}

int64_t float_to_int(double value, DType dtype) {
  if (std::isnan(value)) return 0;
  const int bits = dtype == DType::Index ? 64 : bit_count(dtype);
  if (is_unsigned(dtype)) {
    if (value <= -1) return 0;
    if (value >= std::ldexp(1.0, bits)) return round_int(-1, dtype);
    return static_cast<int64_t>(static_cast<uint64_t>(value));
  }
  const double limit = std::ldexp(1.0, bits - 1);
  if (value >= limit) return std::numeric_limits<int64_t>::max() >> (64 - bits);
  if (value < -limit) return std::numeric_limits<int64_t>::min() >> (64 - bits);
  return static_cast<int64_t>(value);
}

uint16_t encode_small_float(double value, DType dtype) {
  const SmallFloat f = small_float(dtype);
  const int sign_shift = f.mantissa_bits + f.exponent_bits;
  const uint16_t sign = static_cast<uint16_t>((std::signbit(value) ? 1u : 0u) << sign_shift);
  const uint16_t exponent_ones =
      static_cast<uint16_t>(((1u << f.exponent_bits) - 1) << f.mantissa_bits);
  const double rounded = round_small(value, f);
  if (std::isnan(rounded)) {
    const uint16_t payload = static_cast<uint16_t>(f.has_infinity ? 1u << (f.mantissa_bits - 1)
                                                                  : (1u << f.mantissa_bits) - 1);
    return static_cast<uint16_t>(sign | exponent_ones | payload);
  }
  if (std::isinf(rounded)) return static_cast<uint16_t>(sign | exponent_ones);
  if (rounded == 0) return sign;
  int exponent;
  std::frexp(rounded, &exponent);
  const int stored = std::max(exponent - 1 + f.exponent_bias, 0);
  const int unit = std::max(exponent - 1, 1 - f.exponent_bias) - f.mantissa_bits;
  const auto mantissa = static_cast<uint32_t>(std::ldexp(std::fabs(rounded), -unit));
  const uint32_t fraction = mantissa & ((1u << f.mantissa_bits) - 1);
  return static_cast<uint16_t>(sign | static_cast<uint32_t>(stored) << f.mantissa_bits | fraction);
}

double decode_small_float(uint16_t bits, DType dtype) {
  const SmallFloat f = small_float(dtype);
  const int exponent_ones = (1 << f.exponent_bits) - 1;
  const int exponent = bits >> f.mantissa_bits & exponent_ones;
  const int fraction = bits & ((1 << f.mantissa_bits) - 1);
  const double sign = bits >> (f.mantissa_bits + f.exponent_bits) & 1 ? -1.0 : 1.0;
  if (exponent == exponent_ones) {
    if (f.has_infinity) {
      return fraction ? std::numeric_limits<double>::quiet_NaN()
                      : sign * std::numeric_limits<double>::infinity();
    }
    if (fraction == (1 << f.mantissa_bits) - 1) return std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - f.exponent_bias - f.mantissa_bits);
  return sign * std::ldexp(fraction + (1 << f.mantissa_bits),
                           exponent - f.exponent_bias - f.mantissa_bits);
}

}  // namespace plugrad
