// Recurrent layers over sequences. For each layer and direction, one matrix product applies the
// input weights to all steps; a recorded loop computes the rest.
#include <cmath>
#include <functional>

#include "base/check.h"
#include "nn/initial.h"
#include "nn/nonlinearity.h"
#include "plugrad/functional.h"
#include "plugrad/nn.h"
#include "plugrad/operators.h"
#include "plugrad/scan.h"
#include "tensor/index/check_indices.h"
#include "tensor/named_function.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad::nn {
namespace {

using Tensors = std::vector<Tensor>;
using Direction = RecurrentWeights::Direction;

/// The next states of one step, h first, from the gates of x and the states before.
using Cell = std::function<Tensors(const Direction&, const Tensor& from_x, const Tensors& states)>;
/// The part of the gates that does not depend on the states, for all steps.
using Gates = std::function<Tensor(const Direction&, const Tensor& x)>;

Tensor gates_with_all_biases(const Direction& w, const Tensor& x) {
  return linear(x, w.weight_ih.transpose(), w.bias_ih.defined() ? w.bias_ih + w.bias_hh : Tensor());
}

Tensors lstm_cell(const Direction& w, const Tensor& from_x, const Tensors& states) {
  const auto gates = (from_x + matmul(states[0], w.weight_hh.transpose())).chunk(4, -1);
  const Tensor c = gates[1].sigmoid() * states[1] + gates[0].sigmoid() * gates[2].tanh();
  return {gates[3].sigmoid() * c.tanh(), c};
}

Tensor gates_of_gru(const Direction& w, const Tensor& x) {
  return linear(x, w.weight_ih.transpose(), w.bias_ih);
}

Tensors gru_cell(const Direction& w, const Tensor& from_x, const Tensors& states) {
  const auto x = from_x.chunk(3, -1);
  const auto h = linear(states[0], w.weight_hh.transpose(), w.bias_hh).chunk(3, -1);
  const Tensor reset = (x[0] + h[0]).sigmoid(), update = (x[1] + h[1]).sigmoid();
  return {(1.0 - update) * (x[2] + reset * h[2]).tanh() + update * states[0]};
}

Cell rnn_cell(bool is_relu) {
  return [is_relu](const Direction& w, const Tensor& from_x, const Tensors& states) -> Tensors {
    const Tensor sum = from_x + matmul(states[0], w.weight_hh.transpose());
    return {is_relu ? sum.relu() : sum.tanh()};
  };
}

class Sequence {
 public:
  Sequence(const char* name, const RecurrentWeights& weights, Gates gates, Cell cell)
      : name_(name), weights_(weights), gates_(std::move(gates)), cell_(std::move(cell)) {}

  struct Result {
    Tensor output;
    Tensors states;
  };

  /// `before`: one tensor for each kind of state; undefined ones are zeros.
  Result run(const Tensor& given, const Tensors& before, const Tensor& lengths) {
    const RecurrentOptions& options = weights_.options;
    check(given, before, lengths);
    const bool is_single = given.ndim() == 2;
    Tensor x = is_single ? given.unsqueeze(1) : options.batch_first ? given.transpose(0, 1) : given;
    if (lengths.defined()) mask_ = mask_of(x, lengths);
    std::vector<Tensors> last(before.size());
    for (int64_t layer = 0; layer < options.layers; ++layer) {
      if (layer > 0) x = x.dropout(options.dropout, is_training());
      Tensors outputs;
      for (int64_t reverse = 0; reverse < directions(); ++reverse) {
        const int64_t number = layer * directions() + reverse;
        ScanResult one = scan_one(number, reverse != 0, x, before, is_single);
        outputs.push_back(one.outputs[0]);
        for (size_t kind = 0; kind < before.size(); ++kind) last[kind].push_back(one.state[kind]);
      }
      x = outputs.size() == 1 ? outputs[0] : cat(outputs, -1);
    }
    Result result{is_single ? x.squeeze(1) : options.batch_first ? x.transpose(0, 1) : x, {}};
    for (const Tensors& states : last) {
      const Tensor all = stack(states);
      result.states.push_back(is_single ? all.squeeze(1) : all);
    }
    return result;
  }

 private:
  int64_t directions() const { return weights_.options.bidirectional ? 2 : 1; }
  int64_t hidden() const { return weights_.directions[0].weight_hh.size(1); }

  void check(const Tensor& x, const Tensors& before, const Tensor& lengths) const {
    const int64_t in = weights_.directions[0].weight_ih.size(1);
    require((x.ndim() == 2 || x.ndim() == 3) && x.size(-1) == in,
            "[{}] x is {}; it must be (time, batch, {}), (batch, time, {}) with batch_first, or "
            "(time, {})",
            name_, to_string(x.shape()), in, in, in);
    const int64_t batch = x.ndim() == 2 ? 1 : x.size(weights_.options.batch_first ? 0 : 1);
    Shape wanted = {weights_.options.layers * directions(), batch, hidden()};
    if (x.ndim() == 2) wanted.erase(wanted.begin() + 1);
    for (const Tensor& state : before)
      if (state.defined())
        require(state.shape() == wanted, "[{}] a state is {}, but x {} and the layers need {}",
                name_, to_string(state.shape()), to_string(x.shape()), to_string(wanted));
    if (!lengths.defined()) return;
    require(lengths.shape() == Shape{batch}, "[{}] lengths are {}; a batch of {} needs ({},)",
            name_, to_string(lengths.shape()), batch, batch);
    require_type(is_integer(lengths.dtype()), "[{}] lengths are {}, no integers", name_,
                 name_of(lengths.dtype()));
  }

  /// (time, batch, 1): whether a step is inside its sequence, with the variable size of x along the
  /// time.
  Tensor mask_of(const Tensor& x, const Tensor& given) const {
    const int64_t time = x.size(0);
    const Tensor lengths = tensor::in_range(name_, "length", given, 0, time + 1);
    const Tensor is_within =
        Tensor::arange(time).reshape({time, 1, 1}) < lengths.reshape({1, -1, 1});
    return tensor::limited(is_within, 0, tensor::axis_size(x, 0));
  }

  Tensor first_state(const Tensor& given, int64_t number, const Tensor& gates,
                     bool is_single) const {
    if (!given.defined())
      return Tensor::zeros({gates.size(1), hidden()}, gates.dtype(), gates.device());
    return is_single ? given[number].unsqueeze(0) : Tensor(given[number]);
  }

  ScanResult scan_one(int64_t number, bool reverse, const Tensor& x, const Tensors& before,
                      bool is_single) const {
    const Direction& w = weights_.directions[static_cast<size_t>(number)];
    Tensors first, inputs = {gates_(w, x)};
    for (const Tensor& given : before)
      first.push_back(first_state(given, number, inputs[0], is_single));
    if (mask_.defined()) inputs.push_back(mask_);
    const auto step = [&](const Tensors& states, const Tensors& in) {
      ScanResult result{cell_(w, in[0], states), {}};
      result.outputs = {result.state[0]};
      if (in.size() == 1) return result;
      result.outputs = {where(in[1], result.state[0], 0)};
      for (size_t i = 0; i < states.size(); ++i)
        result.state[i] = where(in[1], result.state[i], states[i]);
      return result;
    };
    return scan(step, first, inputs, reverse);
  }

  const char* name_;
  const RecurrentWeights& weights_;
  const Gates gates_;
  const Cell cell_;
  Tensor mask_;
};

}  // namespace

RecurrentWeights::RecurrentWeights(std::string_view name, int64_t in, int64_t hidden, int64_t gates,
                                   const RecurrentOptions& given)
    : options(given) {
  require(in > 0 && hidden > 0 && options.layers > 0,
          "[{}] {} inputs, {} hidden values and {} layers; all must be positive", name, in, hidden,
          options.layers);
  require(options.dropout >= 0 && options.dropout <= 1, "[{}] a dropout of {}; it lies in [0, 1]",
          name, options.dropout);
  const double bound = 1.0 / std::sqrt(static_cast<double>(hidden));
  const int64_t ways = options.bidirectional ? 2 : 1;
  for (int64_t i = 0; i < options.layers * ways; ++i) {
    const int64_t width = i < ways ? in : ways * hidden;
    Direction one{trained_uniform({gates * hidden, width}, bound),
                  trained_uniform({gates * hidden, hidden}, bound),
                  {},
                  {}};
    if (options.bias) {
      one.bias_ih = trained_uniform({gates * hidden}, bound);
      one.bias_hh = trained_uniform({gates * hidden}, bound);
    }
    directions.push_back(std::move(one));
  }
}

void RecurrentWeights::visit_fields(StateVisitor& visitor) const {
  const size_t ways = options.bidirectional ? 2 : 1;
  for (size_t i = 0; i < directions.size(); ++i) {
    const std::string end = fmt::format("_l{}{}", i / ways, i % ways == 1 ? "_reverse" : "");
    visitor.field("weight_ih" + end, directions[i].weight_ih);
    visitor.field("weight_hh" + end, directions[i].weight_hh);
    visitor.field("bias_ih" + end, directions[i].bias_ih);
    visitor.field("bias_hh" + end, directions[i].bias_hh);
  }
}

LSTM::LSTM(int64_t in, int64_t hidden, const RecurrentOptions& options)
    : weights("LSTM", in, hidden, 4, options) {}

LSTM::Result LSTM::operator()(const Tensor& x, const State& before, const Tensor& lengths) const {
  const tensor::NamedFunction named("LSTM");
  Sequence sequence("LSTM", weights, gates_with_all_biases, lstm_cell);
  auto [output, states] = sequence.run(x, {before.h, before.c}, lengths);
  return {output, {states[0], states[1]}};
}

GRU::GRU(int64_t in, int64_t hidden, const RecurrentOptions& options)
    : weights("GRU", in, hidden, 3, options) {}

GRU::Result GRU::operator()(const Tensor& x, const Tensor& before, const Tensor& lengths) const {
  const tensor::NamedFunction named("GRU");
  Sequence sequence("GRU", weights, gates_of_gru, gru_cell);
  auto [output, states] = sequence.run(x, {before}, lengths);
  return {output, states[0]};
}

RNN::RNN(int64_t in, int64_t hidden, const RecurrentOptions& options, std::string_view nonlinearity)
    : is_relu(is_relu_named("RNN", nonlinearity)), weights("RNN", in, hidden, 1, options) {}

RNN::Result RNN::operator()(const Tensor& x, const Tensor& before, const Tensor& lengths) const {
  const tensor::NamedFunction named("RNN");
  Sequence sequence("RNN", weights, gates_with_all_biases, rnn_cell(is_relu));
  auto [output, states] = sequence.run(x, {before}, lengths);
  return {output, states[0]};
}

}  // namespace plugrad::nn
