#include "exact_floats.h"

#include <algorithm>
#include <bit>

namespace plugrad::vulkan {
namespace {

__extension__ using Wide = unsigned __int128;

int width_of(Wide value) {
  const auto high = static_cast<uint64_t>(value >> 64), low = static_cast<uint64_t>(value);
  return static_cast<int>(high ? 64 + std::bit_width(high) : std::bit_width(low));
}

// mantissa * 2^exponent; not for infinities and NaN.
struct Finite {
  uint64_t mantissa;
  int exponent;
};
Finite unpack(const FloatFormat& format, uint64_t x) {
  const auto field = static_cast<int>(format.magnitude(x) >> format.fraction_bits);
  const uint64_t fraction = x & (format.smallest_normal() - 1);
  return {field ? fraction | format.smallest_normal() : fraction,
          std::max(field, 1) - format.bias() - format.fraction_bits};
}

// The value nearest to mantissa * 2^exponent, ties to even. `is_inexact`: the exact mantissa is
// larger, by less than 1; it has more bits than the format then.
uint64_t pack(const FloatFormat& format, uint64_t sign, Wide mantissa, int exponent,
              bool is_inexact = false) {
  if (mantissa == 0) return sign;
  const int least = 1 - format.bias() - format.fraction_bits;
  const int shift = std::max(width_of(mantissa) - format.fraction_bits - 1, least - exponent);
  Wide kept = 0;
  if (shift <= 0) {
    kept = mantissa << -shift;
  } else if (shift < 128) {
    kept = mantissa >> shift;
    const Wide half = Wide{1} << (shift - 1), rest = mantissa & (2 * half - 1);
    if (rest > half || (rest == half && (is_inexact || (kept & 1)))) kept += 1;
  }
  // A carry into the exponent gives the bits of the next power of two.
  const int field = exponent + shift - least;
  const uint64_t bits =
      (static_cast<uint64_t>(field) << format.fraction_bits) + static_cast<uint64_t>(kept);
  const bool is_large = field > 2 * format.bias() || bits >= format.infinity();
  return sign | (is_large ? format.infinity() : bits);
}

}  // namespace

uint64_t add(const FloatFormat& format, uint64_t x, uint64_t y) {
  if (format.magnitude(x) < format.magnitude(y)) std::swap(x, y);
  const uint64_t sign_x = x & format.sign(), sign_y = y & format.sign();
  if (format.is_nan(x)) return format.nan();
  if (format.magnitude(x) == format.infinity())
    return sign_x != sign_y && format.magnitude(y) == format.infinity() ? format.nan() : x;
  const Finite a = unpack(format, x), b = unpack(format, y);
  // 70 bits below the larger operand decide the rounding; bits of the smaller one below those only
  // make the result inexact.
  const int distance = a.exponent - b.exponent, up = std::min(distance, 70), down = distance - up;
  const Wide large = Wide{a.mantissa} << up;
  const uint64_t small = down < 64 ? b.mantissa >> down : 0;
  const bool is_inexact = down > 0 && (down >= 64 ? b.mantissa != 0 : small << down != b.mantissa);
  const bool subtracts = sign_x != sign_y;
  const Wide sum = subtracts ? large - small - is_inexact : large + small;
  if (sum == 0 && subtracts) return 0;
  return pack(format, sign_x, sum, a.exponent - up, is_inexact);
}

uint64_t multiply(const FloatFormat& format, uint64_t x, uint64_t y) {
  const uint64_t sign = (x ^ y) & format.sign();
  const uint64_t least = std::min(format.magnitude(x), format.magnitude(y));
  const uint64_t most = std::max(format.magnitude(x), format.magnitude(y));
  if (most > format.infinity() || (most == format.infinity() && least == 0)) return format.nan();
  if (most == format.infinity()) return sign | most;
  const Finite a = unpack(format, x), b = unpack(format, y);
  return pack(format, sign, Wide{a.mantissa} * b.mantissa, a.exponent + b.exponent);
}

uint64_t divide(const FloatFormat& format, uint64_t x, uint64_t y) {
  const uint64_t sign = (x ^ y) & format.sign();
  const uint64_t above = format.magnitude(x), below = format.magnitude(y);
  if (format.is_nan(x) || format.is_nan(y) ||
      (above == below && (above == 0 || above == format.infinity())))
    return format.nan();
  if (above == format.infinity() || below == 0) return sign | format.infinity();
  if (above == 0 || below == format.infinity()) return sign;
  const Finite a = unpack(format, x), b = unpack(format, y);
  const int up = 128 - width_of(a.mantissa);
  const Wide dividend = Wide{a.mantissa} << up, quotient = dividend / b.mantissa;
  return pack(format, sign, quotient, a.exponent - up - b.exponent,
              quotient * b.mantissa != dividend);
}

uint64_t square_root(const FloatFormat& format, uint64_t x) {
  if (format.magnitude(x) == 0) return x;
  if (format.is_nan(x) || (x & format.sign())) return format.nan();
  if (x == format.infinity()) return x;
  const Finite a = unpack(format, x);
  int up = 128 - width_of(a.mantissa);
  if ((a.exponent - up) % 2 != 0) --up;
  const Wide square = Wide{a.mantissa} << up;
  Wide root = 0, rest = square;
  for (int bit = 63; bit >= 0; --bit) {
    const Wide step = (root << (bit + 1)) + (Wide{1} << (2 * bit));
    if (rest < step) continue;
    rest -= step;
    root += Wide{1} << bit;
  }
  return pack(format, 0, root, (a.exponent - up) / 2, rest != 0);
}

uint64_t truncate(const FloatFormat& format, uint64_t x) {
  if (format.is_nan(x)) return format.nan();
  if (format.magnitude(x) < format.one()) return x & format.sign();
  const int fraction = -unpack(format, x).exponent;
  return fraction > 0 ? x >> fraction << fraction : x;
}

bool less(const FloatFormat& format, uint64_t x, uint64_t y) {
  if (format.is_nan(x) || format.is_nan(y) || equal(format, x, y)) return false;
  const bool is_negative = x & format.sign();
  if (is_negative != ((y & format.sign()) != 0)) return is_negative;
  return is_negative ? x > y : x < y;
}

bool equal(const FloatFormat& format, uint64_t x, uint64_t y) {
  if (format.is_nan(x) || format.is_nan(y)) return false;
  return x == y || (format.magnitude(x) | format.magnitude(y)) == 0;
}

uint64_t convert(const FloatFormat& from, const FloatFormat& to, uint64_t x) {
  if (from.is_nan(x)) return to.nan();
  const uint64_t sign = x & from.sign() ? to.sign() : 0;
  if (from.magnitude(x) == from.infinity()) return sign | to.infinity();
  const Finite a = unpack(from, x);
  return pack(to, sign, a.mantissa, a.exponent);
}

}  // namespace plugrad::vulkan
