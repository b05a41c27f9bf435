// The float formats of kernel IR and their values as MPFR numbers: independent of libm, the
// processor's arithmetic and the rest of the SDK.
#pragma once

#define MPFR_USE_NO_MACRO  // its macros accept only plain pointers
#include <mpfr.h>

#include <cstdint>
#include <string>

#include "plugrad/plugin_api/kernel_ir.h"

namespace plugrad::conformance {

// Values: sign, `exponent_bits` of exponent, `mantissa_bits` of fraction.
struct Format {
  int exponent_bits, mantissa_bits;
  bool has_infinity;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int width() const { return exponent_bits + mantissa_bits; }  // without the sign
  int precision() const { return mantissa_bits + 1; }
  // Exponent range in MPFR's convention, with significands in [1/2, 1).
  int lowest_exponent() const { return 2 - bias() - mantissa_bits; }
  int highest_exponent() const { return bias() + (has_infinity ? 1 : 2); }
  uint64_t sign_bit() const { return uint64_t{1} << width(); }
  uint64_t magnitude(uint64_t bits) const { return bits & (sign_bit() - 1); }
  uint64_t largest() const;                            // bits of the largest finite value
  uint64_t overflow() const { return largest() + 1; }  // infinity, or NaN if the format has none
  uint64_t nan() const;                                // a quiet one
  uint64_t smallest_normal() const { return uint64_t{1} << mantissa_bits; }
};

// Of a float dtype.
const Format& format_of(uint32_t dtype);

bool is_float(uint32_t dtype);    // f16, bf16, f32, f64 and the 8-bit ones
bool is_integer(uint32_t dtype);  // not bool
bool is_signed(uint32_t dtype);   // of integers
int width_of(uint32_t dtype);     // in bits, as in memory

bool is_nan(uint32_t dtype, uint64_t bits);
bool is_infinite(uint32_t dtype, uint64_t bits);
bool is_zero(uint32_t dtype, uint64_t bits);  // of either sign
bool is_denormal(uint32_t dtype, uint64_t bits);
bool is_negative(uint32_t dtype, uint64_t bits);  // the sign bit

// A number of MPFR.
class Real {
 public:
  explicit Real(int precision = 64) { mpfr_init2(value_, precision); }
  ~Real() { mpfr_clear(value_); }
  Real(const Real&) = delete;
  Real& operator=(const Real&) = delete;
  operator mpfr_ptr() { return value_; }
  operator mpfr_srcptr() const { return value_; }

 private:
  mpfr_t value_;
};

// The exact value of a float's bits; `out` needs 53 bits of precision.
void set_value(mpfr_ptr out, uint32_t dtype, uint64_t bits);

// Bits of the value that the format rounds to. `value` was rounded to nearest even at the format's
// precision with unlimited exponent; `ternary` is the direction of that rounding. Changes `value`.
uint64_t round_to_format(mpfr_ptr value, int ternary, uint32_t dtype);

// Readable text: "1.5 (0x3fc00000)", "-7".
std::string describe(uint32_t dtype, uint64_t bits);

}  // namespace plugrad::conformance
