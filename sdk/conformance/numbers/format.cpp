#include "conformance/numbers/format.h"

#include <fmt/format.h>

#include <bit>
#include <stdexcept>

namespace plugrad::conformance {
namespace {

constexpr Format kF16 = {5, 10, true}, kBf16 = {8, 7, true}, kF32 = {8, 23, true};
constexpr Format kF64 = {11, 52, true}, kE4m3 = {4, 3, false}, kE5m2 = {5, 2, true};

// Sets MPFR's default exponent range for a scope.
class ExponentRange {
 public:
  ExponentRange(long lowest, long highest) : lowest_(mpfr_get_emin()), highest_(mpfr_get_emax()) {
    mpfr_set_emin(lowest);
    mpfr_set_emax(highest);
  }
  ~ExponentRange() {
    mpfr_set_emin(lowest_);
    mpfr_set_emax(highest_);
  }
  ExponentRange(const ExponentRange&) = delete;
  ExponentRange& operator=(const ExponentRange&) = delete;

 private:
  long lowest_, highest_;
};

// Encodes a finite value on the format's grid, or just above its largest value.
uint64_t encode_exact(const Format& f, mpfr_srcptr value) {
  const uint64_t wide = std::bit_cast<uint64_t>(mpfr_get_d(value, MPFR_RNDN));
  const int exponent = static_cast<int>(wide >> 52 & 0x7ff);
  if (f.mantissa_bits == 52) return wide & (f.sign_bit() - 1);
  if (exponent == 0) return 0;
  const uint64_t fraction = (wide & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
  const int own = exponent - 1023 + f.bias();
  if (own < 1) return fraction >> (52 - f.mantissa_bits + 1 - own);
  return (static_cast<uint64_t>(own - 1) << f.mantissa_bits) + (fraction >> (52 - f.mantissa_bits));
}

}  // namespace

uint64_t Format::largest() const {
  const uint64_t all = sign_bit() - 1;
  return has_infinity ? all - (uint64_t{1} << mantissa_bits) : all - 1;
}

uint64_t Format::nan() const {
  return has_infinity ? overflow() | uint64_t{1} << (mantissa_bits - 1) : overflow();
}

const Format& format_of(uint32_t dtype) {
  switch (dtype) {
    case PGR_DTYPE_F16:
      return kF16;
    case PGR_DTYPE_BF16:
      return kBf16;
    case PGR_DTYPE_F32:
      return kF32;
    case PGR_DTYPE_F64:
      return kF64;
    case PGR_DTYPE_F8E4M3:
      return kE4m3;
    case PGR_DTYPE_F8E5M2:
      return kE5m2;
    default:
      throw std::logic_error(fmt::format("dtype {} is no float", dtype));
  }
}

bool is_float(uint32_t dtype) {
  return dtype >= PGR_DTYPE_F16 && dtype <= PGR_DTYPE_F8E5M2;
}
bool is_integer(uint32_t dtype) {
  return dtype >= PGR_DTYPE_I8 && dtype <= PGR_DTYPE_U64;
}
bool is_signed(uint32_t dtype) {
  return is_integer(dtype) && dtype % 2 == 0;
}
int width_of(uint32_t dtype) {
  if (is_float(dtype)) return format_of(dtype).width() + 1;
  return dtype == PGR_DTYPE_BOOL ? 8 : 8 << (dtype - PGR_DTYPE_I8) / 2;
}

bool is_nan(uint32_t dtype, uint64_t bits) {
  const Format& f = format_of(dtype);
  return f.magnitude(bits) > (f.has_infinity ? f.overflow() : f.largest());
}
bool is_infinite(uint32_t dtype, uint64_t bits) {
  const Format& f = format_of(dtype);
  return f.has_infinity && f.magnitude(bits) == f.overflow();
}
bool is_zero(uint32_t dtype, uint64_t bits) {
  return format_of(dtype).magnitude(bits) == 0;
}
bool is_denormal(uint32_t dtype, uint64_t bits) {
  const Format& f = format_of(dtype);
  return f.magnitude(bits) != 0 && f.magnitude(bits) < f.smallest_normal();
}
bool is_negative(uint32_t dtype, uint64_t bits) {
  return (bits & format_of(dtype).sign_bit()) != 0;
}

void set_value(mpfr_ptr out, uint32_t dtype, uint64_t bits) {
  const Format& f = format_of(dtype);
  const int sign = is_negative(dtype, bits) ? -1 : 1;
  if (is_nan(dtype, bits)) return mpfr_set_nan(out);
  if (is_infinite(dtype, bits)) return mpfr_set_inf(out, sign);
  if (is_zero(dtype, bits)) return mpfr_set_zero(out, sign);
  const uint64_t magnitude = f.magnitude(bits);
  const int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  uint64_t fraction = magnitude & (f.smallest_normal() - 1);
  if (exponent > 0) fraction |= f.smallest_normal();
  mpfr_set_ui_2exp(out, fraction, (exponent > 0 ? exponent : 1) - f.bias() - f.mantissa_bits,
                   MPFR_RNDN);
  if (sign < 0) mpfr_neg(out, out, MPFR_RNDN);
}

uint64_t round_to_format(mpfr_ptr value, int ternary, uint32_t dtype) {
  const Format& f = format_of(dtype);
  if (mpfr_nan_p(value)) return f.nan();
  const ExponentRange range(f.lowest_exponent(), f.highest_exponent());
  ternary = mpfr_check_range(value, ternary, MPFR_RNDN);
  mpfr_subnormalize(value, ternary, MPFR_RNDN);
  const uint64_t sign = mpfr_signbit(value) ? f.sign_bit() : 0;
  if (mpfr_inf_p(value)) return sign | f.overflow();
  const uint64_t magnitude = mpfr_zero_p(value) ? 0 : encode_exact(f, value);
  return sign | (magnitude > f.largest() ? f.overflow() : f.magnitude(magnitude));
}

std::string describe(uint32_t dtype, uint64_t bits) {
  if (dtype == PGR_DTYPE_BOOL)
    return bits > 1 ? fmt::format("byte {}", bits) : bits ? "true" : "false";
  if (!is_float(dtype)) {
    const int unused = 64 - width_of(dtype);
    const auto value = static_cast<int64_t>(bits << unused) >> unused;
    return is_signed(dtype) ? fmt::format("{}", value) : fmt::format("{}", bits);
  }
  const std::string code = fmt::format("0x{:0{}x}", bits, width_of(dtype) / 4);
  const char* sign = is_negative(dtype, bits) ? "-" : "";
  if (is_nan(dtype, bits)) return fmt::format("{}nan ({})", sign, code);
  if (is_infinite(dtype, bits)) return sign + std::string("inf");
  Real value;
  set_value(value, dtype, bits);
  return fmt::format("{:.9g} ({})", mpfr_get_d(value, MPFR_RNDN), code);
}

}  // namespace plugrad::conformance
