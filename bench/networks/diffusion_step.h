// One training step of a small U-Net of diffusion (Ho et al. 2020): groups normalised, the time added in each block,
// attention at the lowest size; bench/peers/cold.py has the same network.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "plugrad/jit.h"
#include "plugrad/plugrad.h"

namespace plugrad::bench {

struct TimedBlock {
  TimedBlock(int64_t in, int64_t out)
      : norm1(8, in),
        norm2(8, out),
        conv1(in, out, 3, {.padding = 1}),
        conv2(out, out, 3, {.padding = 1}),
        time(128, out) {
    if (in != out) around.emplace(in, out, 1);
  }
  nn::GroupNorm norm1, norm2;
  nn::Conv2d conv1, conv2;
  nn::Linear time;
  std::optional<nn::Conv2d> around;
  PLUGRAD_FIELDS(norm1, norm2, conv1, conv2, time, around)

  Tensor operator()(const Tensor& x, const Tensor& t) const {
    const Tensor h = conv1(silu(norm1(x))) + time(t).unsqueeze(-1).unsqueeze(-1);
    return conv2(silu(norm2(h))) + (around ? (*around)(x) : x);
  }
};

struct DiffusionUNet {
  nn::Linear time1{32, 128}, time2{128, 128};
  nn::Conv2d first{1, 32, 3, {.padding = 1}}, shrink1{32, 32, 3, {.stride = 2, .padding = 1}},
      shrink2{64, 64, 3, {.stride = 2, .padding = 1}}, last{32, 1, 3, {.padding = 1}};
  TimedBlock down1{32, 32}, down2{32, 64}, middle1{64, 128}, middle2{128, 128}, up2{192, 64},
      up1{96, 32};
  nn::MultiHeadAttention attention{128, 4};
  nn::ConvTranspose2d grow2{128, 128, 2, {.stride = 2}}, grow1{64, 64, 2, {.stride = 2}};
  nn::GroupNorm norm{8, 32};
  PLUGRAD_FIELDS(time1, time2, first, shrink1, shrink2, last, down1, down2, middle1, middle2, up2,
                 up1, attention, grow2, grow1, norm)

  // x: (n, 1, 28, 28), step: (n).
  Tensor operator()(const Tensor& x, const Tensor& step) const {
    const Tensor angles = step.unsqueeze(1) * (Tensor::arange(16, DType::F32) * -0.6).exp();
    const Tensor t = silu(time2(silu(time1(cat({angles.sin(), angles.cos()}, 1)))));
    const Tensor a = down1(first(x), t);
    const Tensor b = down2(shrink1(a), t);
    Tensor h = middle1(shrink2(b), t);
    h = h + attention(h.flatten(2).transpose()).transpose().reshape(h.shape());
    h = up2(cat({grow2(middle2(h, t)), b}, 1), t);
    return last(silu(norm(up1(cat({grow1(h), a}, 1), t))));
  }
};

class DiffusionStep {
 public:
  DiffusionStep() : opt_(nn::parameters(net_), {.lr = 1e-3}) {
    Tensor::realize(std::vector{noise_, noisy_, step_});
    Tensor::realize(nn::parameters(net_));
  }
  DiffusionStep(const DiffusionStep&) = delete;
  DiffusionStep& operator=(const DiffusionStep&) = delete;
  double run() {
    opt_.zero_grad();
    const Tensor loss = mse_loss(net_(noisy_, step_), noise_);
    loss.backward();
    opt_.step();
    return loss.item<double>();
  }

 private:
  DiffusionUNet net_;
  optim::AdamW opt_;
  Tensor noise_ = Tensor::randn({8, 1, 28, 28}), noisy_ = Tensor::randn({8, 1, 28, 28}),
         step_ = Tensor::rand({8});
};

}  // namespace plugrad::bench
