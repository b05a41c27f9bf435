// RNN, GRU and LSTM: one step after another.
#include <cmath>
#include <functional>

#include "base/check.h"
#include "onnx/ops/activation.h"
#include "onnx/ops/quantised.h"
#include "onnx/ops/tables.h"
#include "plugrad/functional.h"
#include "plugrad/scan.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad::onnx {
namespace {

// The functions of each direction: `names` are those of one without the attribute. Each that takes
// a number takes the next one of its list.
std::vector<std::vector<Activation>> activations_of(Call& call, size_t directions,
                                                    const std::vector<std::string_view>& names) {
  std::vector<std::string_view> given = call.texts("activations");
  if (given.empty())
    for (size_t i = 0; i < directions; ++i) given.insert(given.end(), names.begin(), names.end());
  if (given.size() != directions * names.size())
    call.wrong(fmt::format("it needs {} activations", directions * names.size()));
  const auto alphas = call.numbers("activation_alpha"), betas = call.numbers("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  const auto taken = [](const std::vector<double>& list, size_t& next,
                        std::optional<double> takes) {
    return takes && next < list.size() ? std::optional(list[next++]) : std::nullopt;
  };
  std::vector<std::vector<Activation>> all(directions);
  for (size_t i = 0; i < given.size(); ++i) {
    const ActivationNumbers numbers = activation_numbers(given[i]);
    const auto alpha = taken(alphas, next_alpha, numbers.alpha),
               beta = taken(betas, next_beta, numbers.beta);
    all[i / names.size()].push_back(activation_of(call, given[i], alpha, beta));
  }
  return all;
}

using Product = std::function<Tensor(const Tensor&)>;

// Everything that one direction needs.
struct Direction {
  Product of_input{}, of_state{};  // with the weights of all gates
  Tensor r{};                      // (gates * hidden, hidden)
  Tensor bias_w{}, bias_r{}, peepholes{};
  Tensor h{}, c{};  // the states before the first step
  std::vector<Activation> activations{};
  double clip = HUGE_VAL;
  bool is_reversed = false;

  Tensor clipped(const Tensor& x) const { return clip == HUGE_VAL ? x : x.clamp(-clip, clip); }
};

struct States {
  Tensor h, c;
};
using StepFunction =
    std::function<States(const Direction&, const Tensor& from_input, const States&)>;

// Part `number` of `count` along the last axis.
Tensor part(const Tensor& x, int64_t number, int64_t count) {
  const int64_t size = x.size(-1) / count;
  return x.slice(-1, {number * size, (number + 1) * size});
}

States rnn_step(const Direction& d, const Tensor& from_input, const States& before) {
  Tensor sum = from_input + d.of_state(before.h);
  if (d.bias_r.defined()) sum = sum + d.bias_r;
  return {d.activations[0](d.clipped(sum)), {}};
}

// Gates in the order z, r, h.
StepFunction gru_step(bool linear_before_reset) {
  return [=](const Direction& d, const Tensor& from_input, const States& before) -> States {
    const auto gate = [&](int64_t i) {
      Tensor sum = part(from_input, i, 3) + before.h.matmul(part(d.r.transpose(), i, 3));
      return d.bias_r.defined() ? sum + part(d.bias_r, i, 3) : sum;
    };
    const Tensor z = d.activations[0](d.clipped(gate(0)));
    const Tensor r = d.activations[0](d.clipped(gate(1)));
    const Tensor weight = part(d.r.transpose(), 2, 3);
    const Tensor bias = d.bias_r.defined() ? part(d.bias_r, 2, 3) : Tensor();
    const auto with_bias = [&](const Tensor& x) { return bias.defined() ? x + bias : x; };
    const Tensor inner = linear_before_reset ? r * with_bias(before.h.matmul(weight))
                                             : with_bias((r * before.h).matmul(weight));
    const Tensor h = d.activations[1](d.clipped(part(from_input, 2, 3) + inner));
    return {(1 - z) * h + z * before.h, {}};
  };
}

// Gates in the order i, o, f, c; peepholes i, o, f.
StepFunction lstm_step(bool couples_forget) {
  return [=](const Direction& d, const Tensor& from_input, const States& before) -> States {
    Tensor sum = from_input + d.of_state(before.h);
    if (d.bias_r.defined()) sum = sum + d.bias_r;
    const auto peek = [&](const Tensor& x, int64_t i, const Tensor& c) {
      return d.peepholes.defined() ? x + part(d.peepholes, i, 3) * c : x;
    };
    const Tensor i = d.activations[0](d.clipped(peek(part(sum, 0, 4), 0, before.c)));
    const Tensor f =
        couples_forget ? 1 - i : d.activations[0](d.clipped(peek(part(sum, 2, 4), 2, before.c)));
    const Tensor candidate = d.activations[1](d.clipped(part(sum, 3, 4)));
    const Tensor c = f * before.c + i * candidate;
    const Tensor o = d.activations[0](d.clipped(peek(part(sum, 1, 4), 1, c)));
    return {o * d.activations[2](c), c};
  };
}

// One step of a batch. `is_inside` (batch, 1): the sequences that are not over, which are all if it is
// undefined; others keep their states and give zeros.
struct Stepped {
  Tensor output;
  States after;
};
Stepped step_inside(const Direction& d, const Tensor& from_input, const Tensor& is_inside,
                    const States& before, const StepFunction& step) {
  const States next = step(d, from_input, before);
  if (!is_inside.defined()) return {next.h, next};
  Stepped stepped{is_inside.where(next.h, next.h.zeros_like()), {}};
  stepped.after.h = is_inside.where(next.h, before.h);
  if (next.c.defined()) stepped.after.c = is_inside.where(next.c, before.c);
  return stepped;
}

// Whether each step (time, batch, 1) is inside its sequence.
Tensor inside_of(const Tensor& from_input, const Tensor& lengths) {
  const Tensor steps = Tensor::arange(from_input.size(0), DType::I32).reshape({-1, 1, 1});
  return tensor::limited(steps < lengths.reshape({1, -1, 1}), 0, tensor::axis_size(from_input, 0));
}

struct Outputs {
  Tensor all;  // (time, batch, hidden)
  States last;
};

Outputs unrolled(const Direction& d, const Tensor& from_input, const Tensor& inside,
                 const StepFunction& step) {
  const int64_t time = from_input.size(0);
  States state{d.h, d.c};
  std::vector<Tensor> all(static_cast<size_t>(time));
  for (int64_t i = 0; i < time; ++i) {
    const int64_t at = d.is_reversed ? time - 1 - i : i;
    const Tensor is_inside = inside.defined() ? Tensor(inside[at]) : Tensor();
    Stepped stepped = step_inside(d, from_input[at], is_inside, state, step);
    all[static_cast<size_t>(at)] = std::move(stepped.output);
    state = std::move(stepped.after);
  }
  return {stack(all, 0), state};
}

Outputs looped(const Direction& d, const Tensor& from_input, const Tensor& inside,
               const StepFunction& step) {
  std::vector<Tensor> first = {d.h}, inputs = {from_input};
  if (d.c.defined()) first.push_back(d.c);
  if (inside.defined()) inputs.push_back(inside);
  const ScanResult result = scan(
      [&](const std::vector<Tensor>& states, const std::vector<Tensor>& in) {
        const States before{states[0], d.c.defined() ? states[1] : Tensor()};
        const Stepped stepped =
            step_inside(d, in[0], inside.defined() ? in[1] : Tensor(), before, step);
        ScanResult one{{stepped.after.h}, {stepped.output}};
        if (d.c.defined()) one.state.push_back(stepped.after.c);
        return one;
      },
      first, inputs, d.is_reversed);
  return {result.outputs[0], {result.state[0], d.c.defined() ? result.state[1] : Tensor()}};
}

// x: (time, batch, inputs). Without a step the states stay.
Outputs run(const Direction& d, const Tensor& x, const Tensor& lengths, const StepFunction& step) {
  if (x.size(0) == 0) return {d.h.unsqueeze(0).slice(0, {0, 0}), {d.h, d.c}};
  Tensor from_input = d.of_input(x);
  if (d.bias_w.defined()) from_input = from_input + d.bias_w;
  const Tensor inside = lengths.defined() ? inside_of(from_input, lengths) : Tensor();
  const bool is_short = x.size(0) <= kMostUnrolled && !tensor::has_variable_size(x, 0);
  return (is_short ? unrolled : looped)(d, from_input, inside, step);
}

// A kind of recurrent layer: LSTM, GRU, RNN or a quantised LSTM.
struct Layer {
  int64_t gates;
  std::vector<std::string_view> activations;  // of one direction
  StepFunction step;
  bool has_cells = false;
  // Weights are integers (directions, inputs, gates * hidden), and so are what they are multiplied
  // with; without it they are floats (directions, gates * hidden, inputs).
  bool is_quantised = false;

  int64_t hidden(Call& call) const { return call[2].size(is_quantised ? 1 : 2); }
  Shape weights(int64_t directions, int64_t inputs, int64_t hidden) const {
    return is_quantised ? Shape{directions, inputs, gates * hidden}
                        : Shape{directions, gates * hidden, inputs};
  }
};

// Errors: User for an input whose shape is not that of X, W and R together.
void require_shapes(Call& call, const Layer& layer, int64_t directions) {
  for (const size_t input : {0, 1, 2})
    if (call[input].ndim() != 3)
      call.wrong(fmt::format("{} has the shape {}, it must have three axes", "XWR"[input],
                             to_string(call[input].shape())));
  const bool batch_first = call.integer("layout", 0) != 0;
  const Tensor x = call[0];
  const int64_t hidden = layer.hidden(call), batch = x.size(batch_first ? 0 : 1),
                time = x.size(batch_first ? 1 : 0);
  const Shape state =
      batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  const auto require_shape = [&](size_t input, const char* role, const Shape& wanted) {
    if (call.has(input)) call.require_shape(input, role, wanted);
  };
  if (call.integer("hidden_size", hidden) != hidden)
    call.wrong(fmt::format("hidden_size is {}, but R has the shape {}",
                           call.integer("hidden_size", hidden), to_string(call[2].shape())));
  require_shape(1, "W", layer.weights(directions, x.size(2), hidden));
  require_shape(2, "R", layer.weights(directions, hidden, hidden));
  require_shape(3, "B", {directions, 2 * layer.gates * hidden});
  require_shape(4, "sequence_lens", {batch});
  require_shape(5, "initial_h", state);
  if (layer.has_cells) {
    require_shape(6, "initial_c", state);
    require_shape(7, "P", {directions, 3 * hidden});
  }
  if (!call.has(4) || !call.value(4).known()) return;
  for (const int64_t length : integers_of(*call.value(4).known()))
    if (length < 0 || length > time)
      call.wrong(fmt::format("sequence_lens has {}, but X has {} steps", length, time));
}

// One direction's part of an input; undefined if there is none.
Tensor of_direction(const Tensor& all, int64_t direction) {
  return all.defined() ? all.slice(0, {direction, direction + 1}).squeeze(0) : Tensor();
}

Product product_with(Call& call, const Layer& layer, size_t weights, size_t scale, int64_t at) {
  const Tensor w = of_direction(call[weights], at);
  if (!layer.is_quantised) return [=](const Tensor& x) { return x.matmul(w.transpose()); };
  const Tensor steps = of_direction(call[scale], at),
               zero = of_direction(call.optional(scale + 1), at);
  return [=](const Tensor& x) { return dynamic_product(x, w, steps, zero); };
}

Values recurrent(Call& call, const Layer& layer) {
  const bool batch_first = call.integer("layout", 0) != 0;
  const std::string_view direction = call.text("direction", "forward");
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  require_shapes(call, layer, directions);
  const Tensor x = batch_first ? call[0].transpose(0, 1) : call[0];
  const auto activations = activations_of(call, static_cast<size_t>(directions), layer.activations);
  const int64_t hidden = layer.hidden(call), of_gates = layer.gates * hidden;
  const auto state_before = [&](size_t input, int64_t at) {
    if (!call.has(input))
      return tensor::limited(Tensor::zeros({x.size(1), hidden}, x.dtype()), 0,
                             tensor::axis_size(x, 1));
    return of_direction(batch_first ? call[input].transpose(0, 1) : call[input], at);
  };
  std::vector<Tensor> all, last_h, last_c;
  for (int64_t at = 0; at < directions; ++at) {
    Direction d{.of_input = product_with(call, layer, 1, 8, at),
                .of_state = product_with(call, layer, 2, 10, at),
                .r = of_direction(call[2], at),
                .peepholes = layer.has_cells ? of_direction(call.optional(7), at) : Tensor(),
                .h = state_before(5, at),
                .c = layer.has_cells ? state_before(6, at) : Tensor(),
                .activations = activations[static_cast<size_t>(at)],
                .clip = call.number("clip", HUGE_VAL),
                .is_reversed = direction == "reverse" || at == 1};
    if (const Tensor bias = of_direction(call.optional(3), at); bias.defined()) {
      d.bias_w = bias.slice(0, {0, of_gates});
      d.bias_r = bias.slice(0, {of_gates, 2 * of_gates});
    }
    const Outputs outputs = run(d, x, call.optional(4), layer.step);
    all.push_back(outputs.all);
    last_h.push_back(outputs.last.h);
    last_c.push_back(outputs.last.c);
  }
  const int64_t of_last = batch_first ? 1 : 0;
  Tensor y = stack(all, 1);  // (time, directions, batch, hidden)
  if (batch_first) y = y.permute({2, 0, 1, 3});
  Values results{y, stack(last_h, of_last)};
  if (layer.has_cells) results.emplace_back(stack(last_c, of_last));
  return results;
}

Values rnn(Call& call) {
  return recurrent(call, {1, {"Tanh"}, rnn_step});
}
Values gru(Call& call) {
  return recurrent(call,
                   {3, {"Sigmoid", "Tanh"}, gru_step(call.integer("linear_before_reset", 0) != 0)});
}
Layer lstm_layer(Call& call) {
  return {4, {"Sigmoid", "Tanh", "Tanh"}, lstm_step(call.integer("input_forget", 0) != 0), true};
}
Values lstm(Call& call) {
  return recurrent(call, lstm_layer(call));
}
Values dynamic_quantize_lstm(Call& call) {
  Layer layer = lstm_layer(call);
  layer.is_quantised = true;
  return recurrent(call, layer);
}

constexpr OperatorRow kRecurrentRows[] = {
    {"DynamicQuantizeLSTM", dynamic_quantize_lstm, false, kMicrosoft},
    {"GRU", gru, kVariableSizes},
    {"LSTM", lstm, kVariableSizes},
    {"RNN", rnn, kVariableSizes},
};

}  // namespace

std::span<const OperatorRow> recurrent_operators() {
  return kRecurrentRows;
}

}  // namespace plugrad::onnx
