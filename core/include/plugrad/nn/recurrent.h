/// Recurrent networks: cells compute one step in time, layers whole sequences. Initial weights and
/// biases: uniform in ±1/sqrt(hidden). Names and order of gates are PyTorch's.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plugrad/nn/state.h"

namespace plugrad::nn {

/// Long short-term memory. Shape: x (…, in), h and c (…, hidden), zeros if undefined. Weights are
/// (4 hidden, in) and (4 hidden, hidden), in the order input, forget, candidate and output gate.
/// Hochreiter and Schmidhuber 1997.
struct PLUGRAD_API LSTMCell {
  struct State {
    Tensor h, c;
  };
  LSTMCell(int64_t in, int64_t hidden, bool with_bias = true);
  State operator()(const Tensor& x, const State& before = {}) const;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
  PLUGRAD_FIELDS(weight_ih, weight_hh, bias_ih, bias_hh)
};

/// Gated recurrent unit. Shape: x (…, in), h (…, hidden), zeros if undefined -> (…, hidden).
/// Weights are (3 hidden, in) and (3 hidden, hidden), in the order reset, update and candidate
/// gate. Cho et al. 2014.
struct PLUGRAD_API GRUCell {
  GRUCell(int64_t in, int64_t hidden, bool with_bias = true);
  Tensor operator()(const Tensor& x, const Tensor& before = {}) const;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
  PLUGRAD_FIELDS(weight_ih, weight_hh, bias_ih, bias_hh)
};

/// Elman's network: h' = f(W_ih x + b_ih + W_hh h + b_hh), f = tanh or relu. Shape: x (…, in), h
/// (…, hidden), zeros if undefined -> (…, hidden). Elman 1990.
struct PLUGRAD_API RNNCell {
  /// Errors: User for a nonlinearity other than "tanh" and "relu".
  RNNCell(int64_t in, int64_t hidden, bool with_bias = true,
          std::string_view nonlinearity = "tanh");
  Tensor operator()(const Tensor& x, const Tensor& before = {}) const;
  bool is_relu;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
  PLUGRAD_FIELDS(weight_ih, weight_hh, bias_ih, bias_hh)
};

/// Options of the layers for whole sequences.
struct RecurrentOptions {
  int64_t layers = 1;          ///< stacked layers; each reads the outputs of the previous one
  bool bidirectional = false;  ///< adds a direction that runs from the last step to the first
  bool bias = true;
  bool batch_first = false;  ///< x and outputs are (batch, time, …), not (time, batch, …)
  double dropout = 0.0;      ///< dropout of the outputs of each layer but the last, in training
};

/// Weights of the layers over sequences, with PyTorch's names: weight_ih_l0, weight_hh_l0,
/// bias_ih_l0, bias_hh_l0, weight_ih_l0_reverse, …
struct PLUGRAD_API RecurrentWeights {
  struct Direction {
    Tensor weight_ih, weight_hh, bias_ih, bias_hh;
  };
  /// Errors: User for sizes that are not positive and a dropout outside of [0, 1].
  RecurrentWeights(std::string_view name, int64_t in, int64_t hidden, int64_t gates,
                   const RecurrentOptions& options);
  void visit_fields(StateVisitor& visitor) const;

  RecurrentOptions options;
  std::vector<Direction> directions;  ///< for each layer: forward, then reverse
  FieldCopies plugrad_field_copies_{this};
};

/// Long short-term memory over sequences: a recorded loop (plugrad/scan.h), compiled once for all
/// lengths. Shape: x (time, batch, in), or (time, in) without a batch; `before` (zeros if
/// undefined) and the final state (layers · directions, batch, hidden), layer by layer, forward
/// before reverse; output (time, batch, directions · hidden). `lengths` (batch,): integers from 0
/// to time, as in PyTorch's packed sequences: outputs at and after the length are 0, the final
/// state is that at the length, and the reverse direction starts there. The time may be a variable
/// size. Errors: User for shapes that do not fit. Hochreiter and Schmidhuber 1997.
struct PLUGRAD_API LSTM {
  using State = LSTMCell::State;
  struct Result {
    Tensor output;
    State state;
  };
  LSTM(int64_t in, int64_t hidden, const RecurrentOptions& options = {});
  Result operator()(const Tensor& x, const State& before = {}, const Tensor& lengths = {}) const;
  void visit_fields(StateVisitor& visitor) const { weights.visit_fields(visitor); }
  RecurrentWeights weights;
};

/// Gated recurrent unit over sequences. Shapes and errors as for LSTM. Cho et al. 2014.
struct PLUGRAD_API GRU {
  struct Result {
    Tensor output, state;
  };
  GRU(int64_t in, int64_t hidden, const RecurrentOptions& options = {});
  Result operator()(const Tensor& x, const Tensor& before = {}, const Tensor& lengths = {}) const;
  void visit_fields(StateVisitor& visitor) const { weights.visit_fields(visitor); }
  RecurrentWeights weights;
};

/// Elman's network over sequences. Shapes and errors as for LSTM, and as for RNNCell. Elman 1990.
struct PLUGRAD_API RNN {
  using Result = GRU::Result;
  RNN(int64_t in, int64_t hidden, const RecurrentOptions& options = {},
      std::string_view nonlinearity = "tanh");
  Result operator()(const Tensor& x, const Tensor& before = {}, const Tensor& lengths = {}) const;
  void visit_fields(StateVisitor& visitor) const { weights.visit_fields(visitor); }
  bool is_relu;
  RecurrentWeights weights;
};

}  // namespace plugrad::nn
