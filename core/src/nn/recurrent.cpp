// Recurrent cells: one step in time.
#include <cmath>

#include "base/check.h"
#include "nn/initial.h"
#include "nn/nonlinearity.h"
#include "plugrad/nn.h"
#include "tensor/named_function.h"

namespace plugrad::nn {
namespace {

struct Weights {
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
};

Weights begin(const char* cell, int64_t in, int64_t hidden, int64_t gates, bool with_bias) {
  require(in > 0 && hidden > 0, "[{}] {} inputs and {} hidden values; both must be positive", cell,
          in, hidden);
  const double bound = 1.0 / std::sqrt(static_cast<double>(hidden));
  Weights w{trained_uniform({gates * hidden, in}, bound),
            trained_uniform({gates * hidden, hidden}, bound),
            {},
            {}};
  if (with_bias) {
    w.bias_ih = trained_uniform({gates * hidden}, bound);
    w.bias_hh = trained_uniform({gates * hidden}, bound);
  }
  return w;
}

// The state, checked; zeros of the required shape if undefined.
Tensor checked_state(const char* cell, const char* name, const Tensor& state, const Tensor& x,
                     const Tensor& weight_ih, const Tensor& weight_hh) {
  require(x.ndim() >= 1 && x.size(-1) == weight_ih.size(1),
          "[{}] x is {}, but the cell takes {} values in the last axis", cell, to_string(x.shape()),
          weight_ih.size(1));
  Shape shape = x.shape();
  shape.back() = weight_hh.size(1);
  if (!state.defined()) return Tensor::zeros(shape, x.dtype(), x.device());
  require(state.shape() == shape, "[{}] {} is {}, but x {} and the cell need {}", cell, name,
          to_string(state.shape()), to_string(x.shape()), to_string(shape));
  return state;
}

}  // namespace

LSTMCell::LSTMCell(int64_t in, int64_t hidden, bool with_bias) {
  Weights w = begin("LSTMCell", in, hidden, 4, with_bias);
  weight_ih = w.weight_ih, weight_hh = w.weight_hh, bias_ih = w.bias_ih, bias_hh = w.bias_hh;
}

LSTMCell::State LSTMCell::operator()(const Tensor& x, const State& before) const {
  const tensor::NamedFunction named("LSTMCell");
  const Tensor h = checked_state("LSTMCell", "h", before.h, x, weight_ih, weight_hh);
  const Tensor c = checked_state("LSTMCell", "c", before.c, x, weight_ih, weight_hh);
  const auto gates =
      (linear(x, weight_ih.transpose(), bias_ih) + linear(h, weight_hh.transpose(), bias_hh))
          .chunk(4, -1);
  const Tensor next = gates[1].sigmoid() * c + gates[0].sigmoid() * gates[2].tanh();
  return {gates[3].sigmoid() * next.tanh(), next};
}

GRUCell::GRUCell(int64_t in, int64_t hidden, bool with_bias) {
  Weights w = begin("GRUCell", in, hidden, 3, with_bias);
  weight_ih = w.weight_ih, weight_hh = w.weight_hh, bias_ih = w.bias_ih, bias_hh = w.bias_hh;
}

Tensor GRUCell::operator()(const Tensor& x, const Tensor& before) const {
  const tensor::NamedFunction named("GRUCell");
  const Tensor h = checked_state("GRUCell", "h", before, x, weight_ih, weight_hh);
  const auto from_x = linear(x, weight_ih.transpose(), bias_ih).chunk(3, -1);
  const auto from_h = linear(h, weight_hh.transpose(), bias_hh).chunk(3, -1);
  const Tensor reset = (from_x[0] + from_h[0]).sigmoid();
  const Tensor update = (from_x[1] + from_h[1]).sigmoid();
  const Tensor candidate = (from_x[2] + reset * from_h[2]).tanh();
  return (1.0 - update) * candidate + update * h;
}

RNNCell::RNNCell(int64_t in, int64_t hidden, bool with_bias, std::string_view nonlinearity)
    : is_relu(is_relu_named("RNNCell", nonlinearity)) {
  Weights w = begin("RNNCell", in, hidden, 1, with_bias);
  weight_ih = w.weight_ih, weight_hh = w.weight_hh, bias_ih = w.bias_ih, bias_hh = w.bias_hh;
}

Tensor RNNCell::operator()(const Tensor& x, const Tensor& before) const {
  const tensor::NamedFunction named("RNNCell");
  const Tensor h = checked_state("RNNCell", "h", before, x, weight_ih, weight_hh);
  const Tensor sum =
      linear(x, weight_ih.transpose(), bias_ih) + linear(h, weight_hh.transpose(), bias_hh);
  return is_relu ? sum.relu() : sum.tanh();
}

}  // namespace plugrad::nn
