// Steps of optimisers (ai.onnx.preview.training). Inputs are the rate, the number of the step, all
// tensors, all gradients, then all states of each kind; outputs the tensors and their states.
#include "base/check.h"
#include "onnx/ops/tables.h"

namespace plugrad::onnx {
namespace {

struct OptimiserStep {
  Tensor rate, number;  // without axes
};

// Calls `update` for each tensor with its gradient and states, which gives the new tensor and
// states.
template <class Update>
Values updated(Call& call, size_t states, const Update& update) {
  const size_t kinds = 2 + states;
  if (call.input_count() < 2 || (call.input_count() - 2) % kinds != 0)
    call.wrong(fmt::format("it needs {} tensors for each that it changes", kinds));
  const size_t count = (call.input_count() - 2) / kinds;
  const OptimiserStep step{call[0].reshape({}), call[1].reshape({})};
  Values results(count * (1 + states));
  for (size_t i = 0; i < count; ++i) {
    std::vector<Tensor> given;
    for (size_t kind = 0; kind < kinds; ++kind) given.push_back(call[2 + kind * count + i]);
    const DType dtype = given[0].dtype();
    given[1] = given[1] + call.number("norm_coefficient", 0) * given[0];
    const std::vector<Tensor> changed = update(step, given);
    for (size_t kind = 0; kind < changed.size(); ++kind)
      results[kind * count + i] = changed[kind].cast(dtype);
  }
  return results;
}

// Source: Duchi et al. 2011.
Values adagrad(Call& call) {
  return updated(call, 1, [&](const OptimiserStep& step, const std::vector<Tensor>& x) {
    const Tensor rate =
        step.rate / (1 + step.number.cast(step.rate.dtype()) * call.number("decay_factor", 0));
    const Tensor squares = x[2] + x[1].square();
    return std::vector{x[0] - rate * x[1] / (squares.sqrt() + call.number("epsilon", 1e-6)),
                       squares};
  });
}

// Source: Kingma and Ba 2015.
Values adam(Call& call) {
  return updated(call, 2, [&](const OptimiserStep& step, const std::vector<Tensor>& x) {
    const double alpha = call.number("alpha", 0.9), beta = call.number("beta", 0.999);
    const Tensor mean = alpha * x[2] + (1 - alpha) * x[1];
    const Tensor squares = beta * x[3] + (1 - beta) * x[1].square();
    const DType dtype = step.rate.dtype();
    const Tensor number = step.number.cast(dtype);
    const auto power = [&](double base) { return Tensor(base).cast(dtype).pow(number); };
    const Tensor adjusted = step.rate * (1 - power(beta)).sqrt() / (1 - power(alpha));
    const Tensor rate = (step.number > 0).where(adjusted, step.rate);
    const Tensor moved = x[0] - rate * mean / (squares.sqrt() + call.number("epsilon", 1e-6));
    return std::vector{(1 - call.number("norm_coefficient_post", 0)) * moved, mean, squares};
  });
}

// Source: Sutskever et al. 2013.
Values momentum(Call& call) {
  const std::string_view mode = call.text("mode", "");
  return updated(call, 1, [&](const OptimiserStep& step, const std::vector<Tensor>& x) {
    const double alpha = call.number("alpha", 0);
    const Tensor beta =
        (step.number > 0).where(Tensor(call.number("beta", 0)), Tensor(1.0)).cast(x[0].dtype());
    const Tensor velocity = alpha * x[2] + beta * x[1];
    const Tensor direction = mode == "nesterov" ? x[1] + alpha * velocity : velocity;
    return std::vector{x[0] - step.rate * direction, velocity};
  });
}

// The derivatives of y by each of xs where xs and zs have the values of the inputs. Those of one x
// are computed with detached values of the others, so that equal values stay apart.
Values gradient_of_graph(Call& call) {
  std::vector<std::string_view> names = call.texts("xs");
  const size_t count = names.size();
  const auto constants = call.texts("zs");
  names.insert(names.end(), constants.begin(), constants.end());
  if (names.size() != call.input_count())
    call.wrong(
        fmt::format("xs and zs name {} values, {} are given", names.size(), call.input_count()));
  Values results;
  for (size_t x = 0; x < count; ++x) {
    std::map<std::string_view, Value> given;
    for (size_t i = 0; i < names.size(); ++i)
      given.insert_or_assign(names[i], i == x ? call[i] : call[i].detach());
    const Value y = call.recording().recompute(given, call.text("y", ""));
    if (!y.is_tensor()) call.wrong(fmt::format("y \"{}\" is no tensor", call.text("y", "")));
    results.push_back(gradient(y.tensor(), {call[x]}, y.tensor().ones_like())[0]);
  }
  return results;
}

constexpr std::string_view kTraining = "ai.onnx.preview.training";
constexpr OperatorRow kTrainingRows[] = {
    {"Adagrad", adagrad, false, kTraining},
    {"Adam", adam, false, kTraining},
    {"Gradient", gradient_of_graph, false, kTraining},
    {"Momentum", momentum, false, kTraining},
};

}  // namespace

std::span<const OperatorRow> training_operators() {
  return kTrainingRows;
}

}  // namespace plugrad::onnx
