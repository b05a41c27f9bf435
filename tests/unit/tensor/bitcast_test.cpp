// Bitcasts between dtypes, and the 8-bit floats: every code, every rounding boundary.
#include <algorithm>
#include <bit>
#include <limits>

#include "expect.h"

namespace plugrad {
namespace {

TEST(Bitcast, SplitsWordsLowBytesFirst) {
  const Tensor x = Tensor::from({1.f, -2.f});
  const Tensor bytes = x.bitcast(DType::U8);
  EXPECT_EQ(bytes.shape(), Shape{8});
  expect_values(bytes, {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0});
  expect_values(Tensor::from({0x01020304}).bitcast(DType::U16), {0x0304, 0x0102});
  expect_values(Tensor::from({1.0}).bitcast(DType::I32), {0, 0x3ff00000});
  EXPECT_EQ(x.reshape({2, 1}).bitcast(DType::F16).shape(), (Shape{2, 2}));
}

TEST(Bitcast, JoinsWhatItSplit) {
  const Tensor x = Tensor::from({1.5, -0.0, 3.25, 1e-3}, {2, 2});
  for (const DType part : {DType::U8, DType::I16, DType::F32, DType::F16, DType::I64}) {
    const Tensor back = x.bitcast(part).bitcast(DType::F64);
    EXPECT_EQ(back.shape(), x.shape());
    EXPECT_EQ(values(back.bitcast(DType::I64)), values(x.bitcast(DType::I64))) << name_of(part);
  }
  EXPECT_EQ(Tensor::zeros({3, 0}).bitcast(DType::U8).shape(), (Shape{3, 0}));
  EXPECT_EQ(Tensor::zeros({0, 4}, DType::U8).bitcast(DType::F32).shape(), (Shape{0, 1}));
}

TEST(Bitcast, BoolIsABytesTruth) {
  expect_values(Tensor::from({true, false}).bitcast(DType::U8), {1, 0});
  expect_values(Tensor::from<uint8_t>({0, 1, 7}).bitcast(DType::Bool), {0, 1, 1});
  expect_values(Tensor::from({true, true, false, false}).bitcast(DType::I32), {257});
}

TEST(Bitcast, RefusesWhatDoesNotDivide) {
  EXPECT_EQ(error_of([] { Tensor::zeros({2, 3}, DType::U8).bitcast(DType::F32); }),
            "[bitcast] the last axis of (2, 3) does not divide into f32 of 4 u8 each");
  EXPECT_EQ(error_of([] { Tensor::zeros({}).bitcast(DType::U8); }),
            "[bitcast] f32 and u8 have elements of different size, and there is no axis to change");
  EXPECT_EQ(error_of([] { Tensor::zeros({2}).bitcast(DType::Void); }),
            "[bitcast] void is no dtype of a tensor");
}

struct Format {
  DType dtype;
  int mantissa, bias;
  bool has_infinity;
};
constexpr Format kFormats[] = {{DType::F8E4M3, 3, 7, false}, {DType::F8E5M2, 2, 15, true}};

/// Value of a code, by the definition (Micikevicius et al. 2022).
double decoded(const Format& f, int code) {
  const int top = (1 << (7 - f.mantissa)) - 1;
  const int exponent = (code & 0x7f) >> f.mantissa, fraction = code & ((1 << f.mantissa) - 1);
  const double sign = code & 0x80 ? -1.0 : 1.0;
  if (f.has_infinity && exponent == top)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  if (!f.has_infinity && (code & 0x7f) == 0x7f) return std::nan("");
  const double size =
      exponent == 0 ? std::ldexp(fraction, 1 - f.bias - f.mantissa)
                    : std::ldexp(fraction + (1 << f.mantissa), exponent - f.bias - f.mantissa);
  return sign * size;
}

Tensor all_codes(DType dtype) {
  return Tensor::arange(256, DType::I32).cast(DType::U8).bitcast(dtype);
}

TEST(Fp8, EveryCodeHasItsValueInEveryDtype) {
  for (const Format& f : kFormats) {
    std::vector<double> expected;
    for (int code = 0; code < 256; ++code) expected.push_back(decoded(f, code));
    const Tensor codes = all_codes(f.dtype);
    for (const DType wide : {DType::F16, DType::BF16, DType::F32, DType::F64})
      expect_near(values(codes.cast(wide)), expected, 0, 0, std::string(name_of(wide)));
    // The reverse: each value is its own rounding; all NaNs become one.
    const Tensor bits = codes.cast(DType::F32).cast(f.dtype).bitcast(DType::U8);
    const std::vector<double> back = values(bits);
    for (size_t code = 0; code < 256; ++code)
      if (!std::isnan(expected[code])) {
        EXPECT_EQ(back[code], static_cast<double>(code));
      }
  }
}

TEST(Fp8, EveryBoundaryRoundsToTheEvenNeighbour) {
  for (const Format& f : kFormats) {
    const int last = f.has_infinity ? 0x7b : 0x7e;
    std::vector<double> x, expected;
    const auto add = [&](double value, double rounded) {
      x.insert(x.end(), {value, -value});
      expected.insert(expected.end(), {rounded, -rounded});
    };
    const double beyond = f.has_infinity ? std::numeric_limits<double>::infinity() : std::nan("");
    for (int code = 0; code <= last; ++code) {
      const double low = decoded(f, code);
      const double unit = code == last ? low - decoded(f, code - 1) : decoded(f, code + 1) - low;
      const double high = code == last ? beyond : low + unit, middle = low + unit / 2;
      add(middle, code % 2 == 0 ? low : high);
      add(std::nextafter(static_cast<float>(middle), 0.f), low);
      add(std::nextafter(static_cast<float>(middle), 1e9f), high);
    }
    add(1e30, beyond);
    add(std::numeric_limits<double>::infinity(), beyond);
    add(std::nan(""), std::nan(""));
    std::vector<float> narrow(x.begin(), x.end());
    for (const DType from : {DType::F32, DType::F64})
      expect_near(values(Tensor::from(narrow).cast(from).cast(f.dtype).cast(DType::F32)), expected,
                  0, 0, std::string(name_of(from)) + " to " + std::string(name_of(f.dtype)));
  }
}

// Just off a boundary by less than f32 shows: rounding twice would go to the even neighbour.
TEST(Fp8, DoublesAreRoundedOnce) {
  const Tensor x = Tensor::from({1.0625 + 1e-12, 1.1875 - 1e-12, -1.0625 - 1e-12});
  expect_values(x.cast(DType::F8E4M3).cast(DType::F32), {1.125, 1.125, -1.125}, 0, 0);
  const Tensor y = Tensor::from({1.125 + 1e-12, 1.375 - 1e-12, 61440.0 - 1e-9, 61440.0});
  expect_values(y.cast(DType::F8E5M2).cast(DType::F32), {1.25, 1.25, 57344, INFINITY}, 0, 0);
}

TEST(Fp8, IntegersAndBool) {
  const Tensor i = Tensor::from({0, 17, 18, 19, -448, 464, 465});
  expect_values(i.cast(DType::F8E4M3).cast(DType::F32), {0, 16, 18, 20, -448, 448, NAN}, 0, 0);
  expect_values(Tensor::from({true, false}).cast(DType::F8E5M2).cast(DType::F32), {1, 0}, 0, 0);
  const Tensor f = Tensor::from({1.75f, -2.5f, 300.f}).cast(DType::F8E5M2);
  expect_values(f.cast(DType::I32), {1, -2, 320});
  expect_values(f.cast(DType::U8), {1, 0, 255});
  expect_values(f.cast(DType::Bool), {1, 1, 1});
}

// Computed in f32, stored as fp8.
TEST(Fp8, ArithmeticIsThatOfF32Rounded) {
  for (const Format& f : kFormats) {
    const Tensor a = Tensor::from({1.f, 1.5f, -3.f, 20.f}).cast(f.dtype);
    const Tensor b = Tensor::from({0.125f, 3.f, 7.f, 30.f}).cast(f.dtype);
    const Tensor wide_a = a.cast(DType::F32), wide_b = b.cast(DType::F32);
    EXPECT_EQ((a + b).dtype(), f.dtype);
    EXPECT_EQ((a + 1.5).dtype(), f.dtype);
    const auto rounded = [&](const Tensor& t) { return values(t.cast(f.dtype).cast(DType::F32)); };
    expect_near(values((a + b).cast(DType::F32)), rounded(wide_a + wide_b), 0, 0);
    expect_near(values((a * b).cast(DType::F32)), rounded(wide_a * wide_b), 0, 0);
    expect_near(values((a / b).cast(DType::F32)), rounded(wide_a / wide_b), 0, 0);
    expect_near(values(a.exp().cast(DType::F32)), rounded(wide_a.exp()), 0, 0);
    expect_near(values(a.sum().cast(DType::F32)), rounded(wide_a.sum()), 0, 0);
    expect_near(values((a < b).cast(DType::F32)), values((wide_a < wide_b).cast(DType::F32)), 0, 0);
  }
}

}  // namespace
}  // namespace plugrad
