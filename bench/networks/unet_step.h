// One training step of a U-Net for 24 x 24 images; all weights have one dtype.
#pragma once

#include <functional>
#include <memory>

#include "plugrad/jit.h"
#include "plugrad/plugrad.h"

namespace plugrad::bench {

struct UNetPair {
  UNetPair(int64_t in, int64_t out)
      : conv1(in, out, 3, {.padding = 1}, false), norm1(out), conv2(out, out, 3, {.padding = 1}) {}
  nn::Conv2d conv1;
  nn::BatchNorm norm1;
  nn::Conv2d conv2;
  PLUGRAD_FIELDS(conv1, norm1, conv2)

  Tensor operator()(const Tensor& x) { return relu(conv2(relu(norm1(conv1(x))))); }
};

struct UNet {
  UNetPair down1{1, 32}, down2{32, 64}, bottom{64, 128};
  nn::ConvTranspose2d up2{128, 64, 2, {.stride = 2}};
  UNetPair join2{128, 64};
  nn::ConvTranspose2d up1{64, 32, 2, {.stride = 2}};
  UNetPair join1{64, 32};
  nn::Conv2d out{32, 1, 1};
  PLUGRAD_FIELDS(down1, down2, bottom, up2, join2, up1, join1, out)

  // Shape: (n, 1, h, w) -> (n, 1, h, w); h and w are multiples of 4.
  Tensor operator()(const Tensor& x) {
    const Tensor a = down1(x);
    const Tensor b = down2(max_pool2d(a));
    const Tensor c = bottom(max_pool2d(b));
    const Tensor d = join2(cat({up2(c), b}, 1));
    return out(join1(cat({up1(d), a}, 1)));
  }
};

/// Replays forward, backward and SGD with momentum.
class UNetStep {
 public:
  explicit UNetStep(DType dtype)
      : clean_(Tensor::randn({4, 1, 48, 48}).cast(dtype)),
        noisy_(Tensor::randn({4, 1, 48, 48}).cast(dtype)) {
    nn::to(net_, dtype);
    opt_ = std::make_unique<optim::SGD>(nn::parameters(net_),
                                        optim::SGDOptions{.lr = 0.05, .momentum = 0.9});
    Tensor::realize(std::vector{clean_, noisy_});
    Tensor::realize(nn::parameters(net_));
  }
  UNetStep(const UNetStep&) = delete;
  UNetStep& operator=(const UNetStep&) = delete;
  double run() { return step_(noisy_).item<double>(); }

 private:
  Tensor record(const Tensor& noisy) {
    opt_->zero_grad();
    const Tensor loss = mse_loss(net_(noisy), clean_);
    loss.backward();
    opt_->step();
    return loss;
  }

  UNet net_;
  Tensor clean_, noisy_;
  std::unique_ptr<optim::SGD> opt_;
  std::function<Tensor(const Tensor&)> step_ =
      jit([this](const Tensor& noisy) { return record(noisy); });
};

}  // namespace plugrad::bench
