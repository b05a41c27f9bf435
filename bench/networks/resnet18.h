// ResNet-18 (He et al. 2016), inference for 1000 classes: (n, 3, 224, 224) to (n, 1000).
#pragma once

#include <optional>
#include <vector>

#include "plugrad/nn.h"

namespace plugrad::bench {

struct BasicBlock {
  BasicBlock(int64_t in, int64_t out, int64_t stride)
      : conv1(in, out, 3, {.stride = stride, .padding = 1}, false),
        conv2(out, out, 3, {.padding = 1}, false),
        norm1(out),
        norm2(out) {
    if (stride == 1) return;
    around.emplace(in, out, 1, ConvOptions{.stride = stride}, false);
    around_norm.emplace(out);
  }
  nn::Conv2d conv1, conv2;
  nn::BatchNorm norm1, norm2;
  std::optional<nn::Conv2d> around;
  std::optional<nn::BatchNorm> around_norm;
  PLUGRAD_FIELDS(conv1, conv2, norm1, norm2, around, around_norm)

  Tensor operator()(const Tensor& x) {
    const Tensor h = norm2(conv2(relu(norm1(conv1(x)))));
    return relu(h + (around ? (*around_norm)((*around)(x)) : x));
  }
};

struct ResNet18 {
  ResNet18() {
    for (int64_t in = 64, width = 64; width <= 512; in = width, width *= 2) {
      blocks.emplace_back(in, width, width == 64 ? 1 : 2);
      blocks.emplace_back(width, width, 1);
    }
  }
  nn::Conv2d first{3, 64, 7, {.stride = 2, .padding = 3}, false};
  nn::BatchNorm norm{64};
  std::vector<BasicBlock> blocks;
  nn::Linear out{512, 1000};
  PLUGRAD_FIELDS(first, norm, blocks, out)

  Tensor operator()(const Tensor& x) {
    Tensor h = relu(norm(first(x))).max_pool2d(3, {.stride = 2, .padding = 1});
    for (BasicBlock& block : blocks) h = block(h);
    return out(h.mean({2, 3}));
  }
};

}  // namespace plugrad::bench
