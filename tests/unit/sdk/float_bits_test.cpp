#include "plugrad/sdk/float_bits.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plugrad/plugin_api/kernel_ir.h"

namespace plugrad::sdk {
namespace {

TEST(FloatBits, KnownValuesOfF16) {
  EXPECT_EQ(encode_float(PGR_DTYPE_F16, 1.0), 0x3c00u);
  EXPECT_EQ(encode_float(PGR_DTYPE_F16, -2.0), 0xc000u);
  EXPECT_EQ(encode_float(PGR_DTYPE_F16, 65504.0), 0x7bffu);
  EXPECT_EQ(encode_float(PGR_DTYPE_F16, 65519.99), 0x7bffu);
  EXPECT_EQ(encode_float(PGR_DTYPE_F16, 65520.0), 0x7c00u);  // a tie rounds to even: infinity
  EXPECT_EQ(encode_float(PGR_DTYPE_F16, std::ldexp(1.0, -24)), 1u);
  EXPECT_EQ(encode_float(PGR_DTYPE_F16, std::ldexp(1.0, -25)), 0u);
  EXPECT_EQ(encode_float(PGR_DTYPE_F16, std::ldexp(1.0001, -25)), 1u);
  EXPECT_EQ(encode_float(PGR_DTYPE_F16, -0.0), 0x8000u);
  EXPECT_EQ(encode_float(PGR_DTYPE_F16, std::nan("")), 0x7e00u);
}

TEST(FloatBits, TiesGoToEven) {
  EXPECT_EQ(encode_float(PGR_DTYPE_BF16, 1.0 + 1.0 / 256), 0x3f80u);
  EXPECT_EQ(encode_float(PGR_DTYPE_BF16, 1.0 + 3.0 / 256), 0x3f82u);
  EXPECT_EQ(encode_float(PGR_DTYPE_F8E4M3, 17.0), encode_float(PGR_DTYPE_F8E4M3, 16.0));
}

TEST(FloatBits, F8E4M3HasNoInfinity) {
  EXPECT_EQ(decode_float(PGR_DTYPE_F8E4M3, 0x7e), 448.0);
  EXPECT_EQ(encode_float(PGR_DTYPE_F8E4M3, 1e9), 0x7fu);
  EXPECT_TRUE(std::isnan(decode_float(PGR_DTYPE_F8E4M3, 0x7f)));
  EXPECT_TRUE(std::isinf(decode_float(PGR_DTYPE_F8E5M2, 0x7c)));
}

// Every code of every 8- and 16-bit format is unchanged by conversion to double and back.
TEST(FloatBits, EveryCodeReadsBack) {
  for (uint32_t dtype : {PGR_DTYPE_F16, PGR_DTYPE_BF16, PGR_DTYPE_F8E4M3, PGR_DTYPE_F8E5M2}) {
    const uint32_t codes = dtype >= PGR_DTYPE_F8E4M3 ? 256 : 65536;
    for (uint32_t code = 0; code < codes; ++code) {
      const double value = decode_float(dtype, code);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(decode_float(dtype, encode_float(dtype, value))));
      } else {
        ASSERT_EQ(encode_float(dtype, value), code) << "dtype " << dtype;
      }
    }
  }
}

}  // namespace
}  // namespace plugrad::sdk
