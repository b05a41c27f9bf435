// IEEE 754 arithmetic in integers: bits of operands to the bits of the correctly rounded result.
// Independent of the host's rounding mode and of its treatment of denormals.
#pragma once

#include <cstdint>

namespace plugrad::vulkan {

struct FloatFormat {
  int fraction_bits, exponent_bits;
  int bits() const { return 1 + exponent_bits + fraction_bits; }
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint64_t sign() const { return uint64_t{1} << (bits() - 1); }
  uint64_t infinity() const { return ((uint64_t{1} << exponent_bits) - 1) << fraction_bits; }
  uint64_t nan() const { return infinity() | uint64_t{1} << (fraction_bits - 1); }
  uint64_t smallest_normal() const { return uint64_t{1} << fraction_bits; }
  uint64_t one() const { return static_cast<uint64_t>(bias()) << fraction_bits; }
  uint64_t magnitude(uint64_t x) const { return x & ~sign(); }
  bool is_nan(uint64_t x) const { return magnitude(x) > infinity(); }
};
inline constexpr FloatFormat kF16{10, 5}, kF32{23, 8}, kF64{52, 11};

// A NaN result is nan().
uint64_t add(const FloatFormat& format, uint64_t x, uint64_t y);
uint64_t multiply(const FloatFormat& format, uint64_t x, uint64_t y);
uint64_t divide(const FloatFormat& format, uint64_t x, uint64_t y);
uint64_t square_root(const FloatFormat& format, uint64_t x);
uint64_t truncate(const FloatFormat& format, uint64_t x);
bool less(const FloatFormat& format, uint64_t x, uint64_t y);
bool equal(const FloatFormat& format, uint64_t x, uint64_t y);
uint64_t convert(const FloatFormat& from, const FloatFormat& to, uint64_t x);

}  // namespace plugrad::vulkan
