// Training whose bits depend on the order of all kinds of sums.
#pragma once

#include <vector>

#include "plugrad/plugrad.h"

namespace plugrad {

/// Losses and parameters of five steps on batches that parts cut unevenly: convolutions, a maximum,
/// batch statistics, random numbers, the norm of all gradients and the moments of Adam.
inline std::vector<float> trained_on(const Mesh& mesh) {
  Tensor::manual_seed(3);
  nn::Sequential net(
      nn::Conv2d(1, 4, 3), nn::BatchNorm(4), relu,
      [](const Tensor& x) { return x.max_pool2d(2).flatten(1); }, nn::Dropout(0.25),
      nn::Linear(4 * 3 * 3, 5));
  nn::data_parallel(net, mesh);
  optim::Adam adam(nn::parameters(net), {.lr = 0.01});
  const auto step = jit([&](const Tensor& x, const Tensor& y) {
    adam.zero_grad();
    const Tensor loss = (net(x) - y).square().mean();
    loss.backward();
    optim::clip_grad_norm(adam.parameters(), 0.5);
    adam.step();
    return loss;
  });
  std::vector<float> found;
  for (int i = 0; i < 5; ++i) {
    const Tensor x = Tensor::randn({20, 1, 8, 8}), y = Tensor::randn({20, 5});
    found.push_back(step(x.shard(mesh, {"data"}), y.shard(mesh, {"data"})).item<float>());
  }
  for (const Tensor& parameter : nn::parameters(net))
    for (const float value : parameter.to_vector<float>()) found.push_back(value);
  return found;
}

}  // namespace plugrad
