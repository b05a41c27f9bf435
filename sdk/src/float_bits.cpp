#include "plugrad/sdk/float_bits.h"

#include <bit>
#include <charconv>
#include <cmath>

#include "plugrad/plugin_api/kernel_ir.h"

namespace plugrad::sdk {
namespace {

struct Format {
  int exponent_bits, mantissa_bits;
  bool has_infinity;
};

constexpr Format format_of(uint32_t dtype) {
  switch (dtype) {
    case PGR_DTYPE_F16:
      return {5, 10, true};
    case PGR_DTYPE_BF16:
      return {8, 7, true};
    case PGR_DTYPE_F8E4M3:
      return {4, 3, false};
    default:
      return {5, 2, true};  // F8E5M2
  }
}

constexpr uint64_t kDoubleMantissa = (uint64_t{1} << 52) - 1;

// Shifts right by `count` (1 to 63), rounding to nearest even.
uint64_t shift_rounded(uint64_t value, int count) {
  const uint64_t half = uint64_t{1} << (count - 1);
  const uint64_t rest = value & ((half << 1) - 1);
  uint64_t result = value >> count;
  if (rest > half || (rest == half && (result & 1))) ++result;
  return result;
}

// Bits of the largest finite magnitude.
uint64_t largest(const Format& f) {
  const uint64_t all = (uint64_t{1} << (f.exponent_bits + f.mantissa_bits)) - 1;
  // In e4m3 only the last code is NaN; the other formats reserve the whole last exponent.
  return f.has_infinity ? all - (uint64_t{1} << f.mantissa_bits) : all - 1;
}

uint64_t encode_small(const Format& f, double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const int width = f.exponent_bits + f.mantissa_bits;
  const uint64_t sign = (bits >> 63) << width;
  const uint64_t infinity = largest(f) + 1;
  const uint64_t nan =
      f.has_infinity ? infinity | (uint64_t{1} << (f.mantissa_bits - 1)) : infinity;
  if (std::isnan(value)) return sign | nan;
  if (std::isinf(value)) return sign | infinity;
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>((bits >> 52) & 0x7ff) - 1023 + bias;
  // Doubles below 2^-1022 are smaller than half of the smallest value of each of these formats.
  if (exponent < -f.mantissa_bits - 1) return sign;
  const uint64_t mantissa = (bits & kDoubleMantissa) | (uint64_t{1} << 52);
  const int drop = 52 - f.mantissa_bits + (exponent < 1 ? 1 - exponent : 0);
  uint64_t magnitude = shift_rounded(mantissa, drop);
  // The hidden bit adds one to the exponent field; so does a carry out of the mantissa.
  if (exponent >= 1) magnitude += static_cast<uint64_t>(exponent - 1) << f.mantissa_bits;
  return sign | (magnitude > largest(f) ? infinity : magnitude);
}

double decode_small(const Format& f, uint64_t bits) {
  const int width = f.exponent_bits + f.mantissa_bits;
  const uint64_t magnitude = bits & ((uint64_t{1} << width) - 1);
  const double sign = (bits >> width) & 1 ? -1.0 : 1.0;
  if (magnitude > largest(f)) {
    const bool is_infinity = f.has_infinity && magnitude == largest(f) + 1;
    return std::copysign(is_infinity ? HUGE_VAL : std::nan(""), sign);
  }
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  const uint64_t fraction = magnitude & ((uint64_t{1} << f.mantissa_bits) - 1);
  const uint64_t hidden = exponent > 0 ? uint64_t{1} << f.mantissa_bits : 0;
  const int scale = (exponent > 0 ? exponent : 1) - bias - f.mantissa_bits;
  return sign * std::ldexp(static_cast<double>(fraction | hidden), scale);
}

}  // namespace

uint64_t encode_float(uint32_t dtype, double value) {
  if (dtype == PGR_DTYPE_F64) return std::bit_cast<uint64_t>(value);
  if (dtype == PGR_DTYPE_F32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  return encode_small(format_of(dtype), value);
}

double decode_float(uint32_t dtype, uint64_t bits) {
  if (dtype == PGR_DTYPE_F64) return std::bit_cast<double>(bits);
  if (dtype == PGR_DTYPE_F32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  return decode_small(format_of(dtype), bits);
}

std::string print_float(double value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return std::string(text, end);
}

}  // namespace plugrad::sdk
