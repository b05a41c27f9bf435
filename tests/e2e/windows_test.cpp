// Depthwise convolutions: shared loads, loop partitioning, rows that are not a multiple of a
// vector, compared with loops.
#include <gtest/gtest.h>

#include <cmath>

#include "base/settings.h"
#include "plugrad/conv.h"
#include "plugrad/tensor.h"

namespace plugrad {
namespace {

struct Windows {
  int64_t batch, channels, height, width, kernel, stride, padding, dilation;
  int64_t out(int64_t size) const {
    return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
  }
};

std::ostream& operator<<(std::ostream& out, const Windows& w) {
  return out << w.batch << " x " << w.channels << " x " << w.height << " x " << w.width
             << ", window " << w.kernel << ", stride " << w.stride << ", padding " << w.padding
             << ", dilation " << w.dilation;
}

// Multiples of 1/8 below 2: sums of 49 products of two are exact.
std::vector<float> eighths(int64_t count, uint32_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  uint32_t state = seed;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int>(state >> 27) - 16) / 8;
  }
  return values;
}

std::vector<float> loops(const Windows& w, const std::vector<float>& x,
                         const std::vector<float>& k) {
  std::vector<float> y;
  for (int64_t image = 0; image < w.batch * w.channels; ++image)
    for (int64_t row = 0; row < w.out(w.height); ++row)
      for (int64_t column = 0; column < w.out(w.width); ++column) {
        float sum = 0;
        for (int64_t r = 0; r < w.kernel; ++r)
          for (int64_t c = 0; c < w.kernel; ++c) {
            const int64_t at_row = row * w.stride + r * w.dilation - w.padding;
            const int64_t at_column = column * w.stride + c * w.dilation - w.padding;
            if (at_row < 0 || at_column < 0 || at_row >= w.height || at_column >= w.width) continue;
            sum += x[static_cast<size_t>((image * w.height + at_row) * w.width + at_column)] *
                   k[static_cast<size_t>((image % w.channels * w.kernel + r) * w.kernel + c)];
          }
        y.push_back(sum);
      }
  return y;
}

void expect_equal(const Windows& w, const std::vector<float>& x) {
  const std::vector<float> k = eighths(w.channels * w.kernel * w.kernel, 7);
  const Tensor image = Tensor::from(x, {w.batch, w.channels, w.height, w.width});
  const Tensor taps = Tensor::from(k, {w.channels, 1, w.kernel, w.kernel});
  const ConvOptions options{
      .stride = {w.stride}, .padding = {w.padding}, .dilation = {w.dilation}, .groups = w.channels};
  const auto ours = conv2d(image, taps, {}, options).to_vector<float>();
  const auto expected = loops(w, x, k);
  ASSERT_EQ(ours.size(), expected.size()) << w;
  for (size_t i = 0; i < ours.size(); ++i) {
    const bool is_equal =
        ours[i] == expected[i] || (std::isnan(ours[i]) && std::isnan(expected[i]));
    ASSERT_TRUE(is_equal) << w << ": element " << i << " is " << ours[i] << " and not "
                          << expected[i];
  }
}

const Windows kWindows[] = {
    {1, 4, 112, 112, 3, 2, 1, 1}, {2, 3, 56, 56, 3, 1, 1, 1},  {1, 8, 28, 28, 3, 1, 1, 1},
    {1, 5, 14, 14, 3, 1, 1, 1},   {2, 4, 7, 7, 3, 1, 1, 1},    {1, 6, 56, 56, 5, 2, 2, 1},
    {1, 3, 28, 28, 5, 1, 2, 1},   {3, 4, 14, 14, 5, 1, 2, 1},  {1, 7, 7, 7, 5, 1, 2, 1},
    {1, 2, 13, 29, 3, 1, 1, 1},   {1, 2, 31, 17, 5, 3, 2, 1},  {1, 2, 40, 24, 7, 1, 3, 1},
    {1, 2, 23, 33, 3, 1, 2, 2},   {1, 2, 16, 16, 3, 1, 0, 1},  {1, 3, 1, 19, 3, 1, 1, 1},
    {1, 3, 19, 1, 3, 1, 1, 1},    {1, 1, 3, 3, 3, 1, 1, 1},    {4, 2, 20, 20, 3, 2, 0, 1},
    {1, 2, 9, 9, 3, 1, 5, 1},     {1, 130, 12, 12, 3, 1, 1, 1}};

TEST(Windows, OfAnySizeStrideAndPaddingAreThoseOfLoops) {
  for (const Windows& w : kWindows)
    expect_equal(w, eighths(w.batch * w.channels * w.height * w.width, 3));
}

// A NaN detects a window or lane that reads an element of another one.
TEST(Windows, NanAndInfinitiesReachTheirOwnWindowsAlone) {
  for (const Windows& w : kWindows) {
    std::vector<float> x = eighths(w.batch * w.channels * w.height * w.width, 5);
    x.front() = std::nanf("");
    x.back() = INFINITY;
    x[static_cast<size_t>(w.width) - 1] = -INFINITY;
    expect_equal(w, x);
  }
}

// The result does not overwrite elements that are read later.
TEST(Windows, AssignedToTheirOwnImageAreThoseOfTheOldOne) {
  const Windows w{2, 8, 28, 28, 3, 1, 1, 1};
  const auto x = eighths(2 * 8 * 28 * 28, 11), k = eighths(8 * 9, 7);
  Tensor image = Tensor::from(x, {2, 8, 28, 28}).realize();
  const Tensor taps = Tensor::from(k, {8, 1, 3, 3});
  const ConvOptions options{.padding = {1}, .groups = 8};
  image.assign(image + conv2d(image, taps, {}, options));
  auto expected = loops(w, x, k);
  for (size_t i = 0; i < x.size(); ++i) expected[i] += x[i];
  EXPECT_EQ(image.to_vector<float>(), expected);
}

// 28 = 16 + 16 with four elements computed twice: if rows were read where they are written, these
// four would change twice.
TEST(Windows, RowsThatAreChangedInPlaceAreComputedOnce) {
  for (const int64_t width : {7, 12, 14, 28, 30}) {
    const int64_t rows = 65536 / width;
    const auto x = eighths(rows * width, 13), b = eighths(rows, 17);
    Tensor values = Tensor::from(x, {rows, width}).contiguous().realize();
    const Tensor bias = Tensor::from(b, {rows, 1}).contiguous().realize();
    for (int i = 0; i < 3; ++i) values.assign(values * 2 + bias).realize();
    const auto ours = values.to_vector<float>();
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(ours[i], 8 * x[i] + 7 * b[i / static_cast<size_t>(width)])
          << "element " << i << " of rows of " << width;
  }
}

}  // namespace
}  // namespace plugrad
