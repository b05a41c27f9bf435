// One training step of the demo's network on random data.
#pragma once

#include "plugrad/optim.h"
#include "tools/plugrad/mnist_networks.h"

namespace plugrad::bench {

class MnistStep {
 public:
  explicit MnistStep(int64_t batch)
      : x_(Tensor::rand({batch, 1, 28, 28})),
        y_(Tensor::randint({batch}, 0, 10)),
        opt_(nn::parameters(net_)) {
    Tensor::realize(std::vector{x_, y_});
    Tensor::realize(nn::parameters(net_));
  }
  double run() {
    opt_.zero_grad();
    Tensor loss = sparse_categorical_crossentropy(net_(x_), y_);
    loss.backward();
    opt_.step();
    return loss.item<double>();
  }
  /// Images, labels and parameters.
  std::vector<Tensor> inputs() const {
    std::vector<Tensor> all = {x_, y_};
    for (const Tensor& parameter : nn::parameters(net_)) all.push_back(parameter);
    return all;
  }

 private:
  tools::MnistCnn net_;
  Tensor x_, y_;
  optim::Adam opt_;
};

}  // namespace plugrad::bench
