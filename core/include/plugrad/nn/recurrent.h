/// Cells of recurrent networks: one step in time, to be called in a loop. All weights and biases
/// begin uniform in ±1/sqrt(hidden); names and order of gates are PyTorch's.
#pragma once

#include <cstdint>

#include "plugrad/nn/state.h"

namespace plugrad::nn {

/// Long short-term memory. Shape: x (…, in), h and c (…, hidden), zeros when not given. Weights are
/// (4 hidden, in) and (4 hidden, hidden): input, forget, candidate and output gate. Hochreiter and
/// Schmidhuber 1997.
struct PLUGRAD_API LSTMCell {
  struct State {
    Tensor h, c;
  };
  LSTMCell(int64_t in, int64_t hidden, bool with_bias = true);
  State operator()(const Tensor& x, const State& before = {}) const;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
  PLUGRAD_FIELDS(weight_ih, weight_hh, bias_ih, bias_hh)
};

/// Gated recurrent unit. Shape: x (…, in), h (…, hidden), zeros when not given -> (…, hidden).
/// Weights are (3 hidden, in) and (3 hidden, hidden): reset, update and candidate gate. Cho et al.
/// 2014.
struct PLUGRAD_API GRUCell {
  GRUCell(int64_t in, int64_t hidden, bool with_bias = true);
  Tensor operator()(const Tensor& x, const Tensor& before = {}) const;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
  PLUGRAD_FIELDS(weight_ih, weight_hh, bias_ih, bias_hh)
};

}  // namespace plugrad::nn
