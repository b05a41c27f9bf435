// One training step of a pre-norm transformer block on random data.
#pragma once

#include <functional>

#include "plugrad/jit.h"
#include "plugrad/nn.h"
#include "plugrad/optim.h"

namespace plugrad::bench {

struct TransformerBlock {
  TransformerBlock(int64_t width, int64_t heads)
      : n1({width}),
        attention(width, heads),
        n2({width}),
        up(width, 4 * width),
        down(4 * width, width) {}
  nn::LayerNorm n1;
  nn::MultiHeadAttention attention;
  nn::LayerNorm n2;
  nn::Linear up, down;
  PLUGRAD_FIELDS(n1, attention, n2, up, down)

  Tensor operator()(const Tensor& x) const {
    const Tensor h = x + attention(n1(x));
    return h + down(gelu(up(n2(h))));
  }
};

class TransformerStep {
 public:
  TransformerStep(int64_t batch, int64_t length, int64_t width, int64_t heads)
      : net_(width, heads),
        x_(Tensor::randn({batch, length, width})),
        y_(Tensor::randn({batch, length, width})),
        opt_(nn::parameters(net_)) {
    Tensor::realize(std::vector{x_, y_});
    Tensor::realize(nn::parameters(net_));
  }
  TransformerStep(const TransformerStep&) = delete;
  TransformerStep& operator=(const TransformerStep&) = delete;
  double run() { return step_(x_, y_).item<double>(); }
  std::vector<Tensor> data() const { return {x_, y_}; }
  /// The projections of query, key and value: all weights, then all biases, in the order of the
  /// peer's stacked matrix.
  std::vector<Tensor> parameters() const {
    const nn::MultiHeadAttention& a = net_.attention;
    std::vector<Tensor> all = {net_.n1.weight, net_.n1.bias};
    for (const nn::Linear* p : {&a.q_proj, &a.k_proj, &a.v_proj}) all.push_back(p->weight);
    for (const nn::Linear* p : {&a.q_proj, &a.k_proj, &a.v_proj}) all.push_back(p->bias);
    for (const Tensor& t : {a.out_proj.weight, a.out_proj.bias, net_.n2.weight, net_.n2.bias,
                            net_.up.weight, net_.up.bias, net_.down.weight, net_.down.bias})
      all.push_back(t);
    return all;
  }

 private:
  Tensor record(const Tensor& x, const Tensor& y) {
    opt_.zero_grad();
    Tensor loss = mse_loss(net_(x), y);
    loss.backward();
    opt_.step();
    return loss;
  }

  TransformerBlock net_;
  Tensor x_, y_;
  optim::Adam opt_;
  std::function<Tensor(const Tensor&, const Tensor&)> step_ =
      jit([this](const Tensor& x, const Tensor& y) { return record(x, y); });
};

}  // namespace plugrad::bench
