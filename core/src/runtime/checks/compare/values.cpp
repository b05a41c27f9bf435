#include "runtime/checks/compare/values.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "plugrad/plugin_api/kernel_ir.h"
#include "runtime/checks/live_objects.h"

namespace plugrad::runtime {
namespace {

struct Format {
  int exponent_bits, fraction_bits;
  bool has_infinity;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint64_t fraction_mask() const { return (uint64_t{1} << fraction_bits) - 1; }
  uint64_t most_exponent() const { return (uint64_t{1} << exponent_bits) - 1; }
  uint64_t sign_bit() const { return uint64_t{1} << (exponent_bits + fraction_bits); }
};

Format format_of(uint32_t dtype) {
  switch (dtype) {
    case PGR_DTYPE_F16:
      return {5, 10, true};
    case PGR_DTYPE_BF16:
      return {8, 7, true};
    case PGR_DTYPE_F64:
      return {11, 52, true};
    case PGR_DTYPE_F8E4M3:
      return {4, 3, false};
    case PGR_DTYPE_F8E5M2:
      return {5, 2, true};
    default:
      return {8, 23, true};
  }
}

bool is_signed(uint32_t dtype) {
  return dtype == PGR_DTYPE_I8 || dtype == PGR_DTYPE_I16 || dtype == PGR_DTYPE_I32 ||
         dtype == PGR_DTYPE_I64;
}

int64_t signed_value(uint32_t dtype, uint64_t bits) {
  const auto unused = static_cast<int>(64 - 8 * dtype_bytes(dtype));
  return static_cast<int64_t>(bits << unused) >> unused;
}

// Maps floats to integers in the order of their values; -0 and +0 alike.
int64_t ordered(uint32_t dtype, uint64_t bits) {
  const uint64_t sign = format_of(dtype).sign_bit();
  return bits & sign ? -static_cast<int64_t>(bits & (sign - 1)) : static_cast<int64_t>(bits);
}

}  // namespace

bool is_float(uint32_t dtype) {
  return dtype >= PGR_DTYPE_F16 && dtype <= PGR_DTYPE_F8E5M2;
}

uint64_t bits_at(std::span<const std::byte> bytes, uint32_t dtype, uint64_t index) {
  const uint64_t size = dtype_bytes(dtype);
  uint64_t out = 0;
  std::memcpy(&out, bytes.data() + index * size, size);
  return out;
}

bool is_nan(uint32_t dtype, uint64_t bits) {
  if (!is_float(dtype)) return false;
  const Format f = format_of(dtype);
  const uint64_t exponent = bits >> f.fraction_bits & f.most_exponent();
  const uint64_t fraction = bits & f.fraction_mask();
  if (exponent != f.most_exponent()) return false;
  return f.has_infinity ? fraction != 0 : fraction == f.fraction_mask();
}

bool is_denormal(uint32_t dtype, uint64_t bits) {
  if (!is_float(dtype)) return false;
  const Format f = format_of(dtype);
  return (bits >> f.fraction_bits & f.most_exponent()) == 0 && (bits & f.fraction_mask()) != 0;
}

bool is_zero(uint32_t dtype, uint64_t bits) {
  return is_float(dtype) ? (bits & (format_of(dtype).sign_bit() - 1)) == 0 : bits == 0;
}

double number_of(uint32_t dtype, uint64_t bits) {
  if (!is_float(dtype))
    return is_signed(dtype) ? static_cast<double>(signed_value(dtype, bits))
                            : static_cast<double>(bits);
  const Format f = format_of(dtype);
  if (is_nan(dtype, bits)) return NAN;
  const uint64_t exponent = bits >> f.fraction_bits & f.most_exponent();
  const auto fraction = static_cast<double>(bits & f.fraction_mask());
  double value = 0;
  if (f.has_infinity && exponent == f.most_exponent())
    value = INFINITY;
  else if (exponent == 0)
    value = std::ldexp(fraction, 1 - f.bias() - f.fraction_bits);
  else
    value = std::ldexp(fraction + std::ldexp(1.0, f.fraction_bits),
                       static_cast<int>(exponent) - f.bias() - f.fraction_bits);
  return bits & f.sign_bit() ? -value : value;
}

uint64_t ulps_between(uint32_t dtype, uint64_t a, uint64_t b) {
  if (!is_float(dtype)) {
    if (is_signed(dtype)) {
      const int64_t x = signed_value(dtype, a), y = signed_value(dtype, b);
      return x > y ? static_cast<uint64_t>(x) - static_cast<uint64_t>(y)
                   : static_cast<uint64_t>(y) - static_cast<uint64_t>(x);
    }
    return a > b ? a - b : b - a;
  }
  if (is_nan(dtype, a) || is_nan(dtype, b)) return UINT64_MAX;
  const int64_t x = ordered(dtype, a), y = ordered(dtype, b);
  return x > y ? static_cast<uint64_t>(x) - static_cast<uint64_t>(y)
               : static_cast<uint64_t>(y) - static_cast<uint64_t>(x);
}

double ulp_of(uint32_t dtype, uint64_t bits) {
  if (!is_float(dtype)) return 0;
  const Format f = format_of(dtype);
  const auto exponent = static_cast<int>(bits >> f.fraction_bits & f.most_exponent());
  return std::ldexp(1.0, (exponent == 0 ? 1 : exponent) - f.bias() - f.fraction_bits);
}

double epsilon_of(uint32_t dtype) {
  return std::ldexp(1.0, -format_of(dtype).fraction_bits);
}

uint64_t bits_of(uint32_t dtype, double value) {
  const Format f = format_of(dtype);
  const uint64_t sign = std::signbit(value) ? f.sign_bit() : 0;
  value = std::fabs(value);
  if (value == 0) return sign;
  int exponent = 0;
  std::frexp(value, &exponent);
  exponent = std::max(exponent - 1, 1 - f.bias());
  const double fraction = std::nearbyint(std::ldexp(value, f.fraction_bits - exponent));
  const auto whole = static_cast<uint64_t>(fraction);
  const bool is_normal = whole > f.fraction_mask();
  const auto biased = static_cast<uint64_t>(exponent + f.bias());
  const uint64_t bits =
      is_normal ? (biased << f.fraction_bits) + (whole - f.fraction_mask() - 1) : whole;
  return sign | bits;
}

std::string value_text(uint32_t dtype, uint64_t bits) {
  if (dtype == PGR_DTYPE_BOOL)
    return bits == 0 ? "false" : bits == 1 ? "true" : fmt::to_string(bits);
  if (!is_float(dtype))
    return is_signed(dtype) ? fmt::to_string(signed_value(dtype, bits)) : fmt::to_string(bits);
  const double value = number_of(dtype, bits);
  if (dtype == PGR_DTYPE_F64) return fmt::format("{:.17g}", value);
  return fmt::format("{:.{}g}", value, dtype == PGR_DTYPE_F32 ? 9 : 5);
}

}  // namespace plugrad::runtime
