// One training step of the demo's network on random data.
#pragma once

#include <functional>

#include "plugrad/jit.h"
#include "plugrad/optim.h"
#include "tools/plugrad/mnist_networks.h"

namespace plugrad::bench {

class MnistStep {
 public:
  MnistStep(const MnistStep&) = delete;
  MnistStep& operator=(const MnistStep&) = delete;
  explicit MnistStep(int64_t batch)
      : x_(Tensor::randn({batch, 1, 28, 28})),
        y_(Tensor::randint({batch}, 0, 10)),
        opt_(nn::parameters(net_)) {
    Tensor::realize(std::vector{x_, y_});
    Tensor::realize(nn::parameters(net_));
  }
  /// A replayed step; returns the loss.
  double run() { return step_(x_, y_).item<double>(); }
  /// A step that is recorded and planned each time.
  double run_plainly() { return record(x_, y_).item<double>(); }
  std::vector<Tensor> data() const { return {x_, y_}; }
  std::vector<Tensor> parameters() const { return nn::parameters(net_); }

 private:
  Tensor record(const Tensor& x, const Tensor& y) {
    opt_.zero_grad();
    Tensor loss = sparse_categorical_crossentropy(net_(x), y);
    loss.backward();
    opt_.step();
    return loss;
  }

  tools::MnistCnn net_;
  Tensor x_, y_;
  optim::Adam opt_;
  std::function<Tensor(const Tensor&, const Tensor&)> step_ =
      jit([this](const Tensor& x, const Tensor& y) { return record(x, y); });
};

}  // namespace plugrad::bench
