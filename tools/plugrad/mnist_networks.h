// The networks of `plugrad train`, for images of 28 x 28 or 32 x 32.
#pragma once

#include "plugrad/nn.h"

namespace plugrad::tools {

constexpr int64_t square(int64_t x) {
  return x * x;
}

/// 5x5x32, 5x5x32, batchnorm, pool, 3x3x64, 3x3x64, batchnorm, pool, linear: 98% in 120 steps.
struct MnistCnn {
  explicit MnistCnn(int64_t channels = 1, int64_t side = 28)
      : c1(channels, 32, 5), out(64 * square((side - 8) / 2 / 2 - 2), 10) {}

  nn::Conv2d c1, c2{32, 32, 5}, c3{32, 64, 3}, c4{64, 64, 3};
  nn::BatchNorm n1{32}, n2{64};
  nn::Linear out;
  PLUGRAD_FIELDS(c1, c2, c3, c4, n1, n2, out)

  Tensor operator()(const Tensor& x) {
    Tensor h = n1(relu(c2(relu(c1(x))))).max_pool2d(2);
    return out(n2(relu(c4(relu(c3(h))))).max_pool2d(2).flatten(1));
  }
};

/// Two strided convolutions, 3x3x8 and 3x3x16, and a linear layer: for slow devices and quick
/// tests.
struct MnistSmall {
  explicit MnistSmall(int64_t channels = 1, int64_t side = 28)
      : c1(channels, 8, 3, {.stride = 2}), out(16 * square(((side - 1) / 2 - 1) / 2), 10) {}

  nn::Conv2d c1, c2{8, 16, 3, {.stride = 2}};
  nn::Linear out;
  PLUGRAD_FIELDS(c1, c2, out)

  Tensor operator()(const Tensor& x) { return out(relu(c2(relu(c1(x)))).flatten(1)); }
};

}  // namespace plugrad::tools
