// The probe's arithmetic in integers against the processor's: random bits, and operands that are
// close to each other, to powers of two, or to the smallest values.
#include "driver/exact_floats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "plugrad/plugin_api/kernel_ir.h"
#include "plugrad/sdk/float_bits.h"

using namespace plugrad::vulkan;

namespace {

struct Dtype {
  std::uint32_t dtype;
  FloatFormat format;
  // Rounds once: double has more than twice the bits of f16 and f32.
  std::uint64_t round(double value) const { return plugrad::sdk::encode_float(dtype, value); }
  double value(std::uint64_t bits) const { return plugrad::sdk::decode_float(dtype, bits); }
};
constexpr Dtype kF16Dtype{PGR_DTYPE_F16, kF16}, kF32Dtype{PGR_DTYPE_F32, kF32},
    kF64Dtype{PGR_DTYPE_F64, kF64};

class ExactFloats : public testing::TestWithParam<Dtype> {
 protected:
  const FloatFormat& f = GetParam().format;
  void expect(std::uint64_t got, double wanted, const char* op, std::uint64_t x, std::uint64_t y) {
    if (std::isnan(wanted) ? f.is_nan(got) : got == GetParam().round(wanted)) return;
    ADD_FAILURE() << op << std::hex << " of " << x << ", " << y << " gives " << got;
  }
  void compare(std::uint64_t x, std::uint64_t y) {
    const double a = GetParam().value(x), b = GetParam().value(y);
    expect(add(f, x, y), a + b, "add", x, y);
    expect(multiply(f, x, y), a * b, "multiply", x, y);
    expect(divide(f, x, y), a / b, "divide", x, y);
    expect(square_root(f, x), std::sqrt(a), "square_root", x, y);
    expect(truncate(f, x), std::trunc(a), "truncate", x, y);
    expect(convert(kF64, f, std::bit_cast<std::uint64_t>(a)), a, "convert", x, y);
    EXPECT_EQ(less(f, x, y), a < b);
    EXPECT_EQ(equal(f, x, y), a == b);
  }
};

}  // namespace

TEST_P(ExactFloats, Results_AreThoseOfTheProcessor) {
  std::mt19937_64 random(1);
  const std::uint64_t all = f.sign() | (f.sign() - 1), low = 2 * f.smallest_normal() - 1;
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t x = random() & all, y = random() & all;
    compare(x, y);
    compare(x, ((x ^ f.sign()) + y % 64) & all);              // cancellation
    compare(x & (f.sign() | low), y);                         // denormals
    compare(x & ~(low >> 4), y & ~(low >> 4));                // few bits, ties
    compare(x, (x & f.infinity()) ^ (y & (f.sign() | low)));  // exponents alike
  }
}

TEST_P(ExactFloats, Conversions_RoundOnce) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100'000; ++i) {
    const double value = std::ldexp(1 + std::ldexp(double(random() >> 12), -52),
                                    static_cast<int>(random() % 320) - 160);
    EXPECT_EQ(convert(kF64, f, std::bit_cast<std::uint64_t>(value)), GetParam().round(value));
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ExactFloats, testing::Values(kF16Dtype, kF32Dtype, kF64Dtype));
