// Branches and loops.
#include <algorithm>

#include "base/check.h"
#include "onnx/ops/tables.h"
#include "plugrad/functional.h"

namespace plugrad::onnx {
namespace {

using Values = std::vector<Value>;

bool is_true(const tensor::HostValues& condition) {
  return !condition.bits.empty() && condition.bits[0] != 0;
}

// Both branches are computed where a device has the condition and the branches agree in shapes and
// dtypes; else the host decides.
Values if_(Call& call) {
  const Value& condition = call.value(0);
  const auto run = [&](std::string_view branch) {
    return call.recording().run(call.graph(branch), {});
  };
  if (condition.known() || !call.recording().is_jitted)
    return run(is_true(call.host(0)) ? "then_branch" : "else_branch");
  Values yes, no;
  try {
    yes = run("then_branch");
    no = run("else_branch");
  } catch (const Error&) {  // a branch that is not taken may not suit the inputs
    throw NeedsHostValues();
  }
  Values chosen;
  for (size_t i = 0; i < yes.size() && i < no.size(); ++i) {
    if (!yes[i].is_tensor() || !no[i].is_tensor() ||
        yes[i].tensor().shape() != no[i].tensor().shape() ||
        yes[i].tensor().dtype() != no[i].tensor().dtype())
      throw NeedsHostValues();
    chosen.emplace_back(call[0].reshape({}).where(yes[i].tensor(), no[i].tensor()));
  }
  return chosen;
}

Tensor joined(const std::vector<Tensor>& steps, int64_t axis) {
  return stack(steps, axis);
}

// Runs while the condition holds, which the body's first result renews.
Values loop(Call& call) {
  const GraphMessage& body = call.graph("body");
  std::optional<int64_t> most;
  if (call.has(0)) most = call.integer_input(0);
  bool goes_on = !call.has(1) || is_true(call.host(1));
  Values carried;
  for (size_t i = 2; i < call.input_count(); ++i)
    carried.push_back(call.has(i) ? call.value(i) : Value());
  const size_t carried_count = carried.size();
  std::vector<std::vector<Tensor>> collected(std::max(body.outputs.size(), carried_count + 1) - 1 -
                                             carried_count);
  for (int64_t step = 0; goes_on && (!most || step < *most); ++step) {
    Values given{Value::known({{}, DType::I64, {static_cast<uint64_t>(step)}}),
                 Value::known({{}, DType::Bool, {1}})};
    given.insert(given.end(), carried.begin(), carried.end());
    Values results = call.recording().run(body, given);
    // The condition decides only where the loop may end before `most`.
    if (results[0].known())
      goes_on = is_true(*results[0].known());
    else if (call.recording().is_jitted)
      throw NeedsHostValues();
    else
      goes_on = results[0].tensor().item<bool>();
    for (size_t i = 0; i < carried_count; ++i) carried[i] = results[1 + i];
    for (size_t i = 0; i < collected.size(); ++i)
      collected[i].push_back(results[1 + carried_count + i].tensor());
  }
  Values results = std::move(carried);
  for (size_t i = 0; i < collected.size(); ++i) {
    if (!collected[i].empty()) {
      results.emplace_back(joined(collected[i], 0));
      continue;
    }
    const TypeMessage& type = body.outputs[1 + carried_count + i].type;
    Shape shape{0};
    for (const auto& dim : type.shape.value_or(std::vector<TypeMessage::Dimension>()))
      shape.push_back(dim.size.value_or(0));
    results.emplace_back(Tensor::zeros(shape, dtype_of(type.element).value_or(DType::F32)));
  }
  return results;
}

// Operator set 8 had a batch axis and lengths before the states.
Values scan(Call& call) {
  if (call.opset() < 9)
    call.unsupported("Scan of operator set 8; export the model with 9 or later");
  const GraphMessage& body = call.graph("body");
  const auto inputs = static_cast<size_t>(call.integer("num_scan_inputs", 1));
  const size_t states = call.input_count() - inputs, outputs = body.outputs.size() - states;
  const auto axes = call.integers("scan_input_axes", std::vector<int64_t>(inputs, 0));
  const auto backwards = call.integers("scan_input_directions", std::vector<int64_t>(inputs, 0));
  const auto out_axes = call.integers("scan_output_axes", std::vector<int64_t>(outputs, 0));
  const auto reversed = call.integers("scan_output_directions", std::vector<int64_t>(outputs, 0));
  Values state;
  for (size_t i = 0; i < states; ++i) state.push_back(call.value(i));
  const int64_t steps = call[states].size(axes.at(0));
  std::vector<std::vector<Tensor>> collected(outputs);
  for (int64_t step = 0; step < steps; ++step) {
    Values given = state;
    for (size_t i = 0; i < inputs; ++i) {
      const int64_t at = backwards.at(i) != 0 ? steps - 1 - step : step;
      given.emplace_back(call[states + i].slice(axes[i], {at, at + 1}).squeeze(axes[i]));
    }
    Values results = call.recording().run(body, given);
    state.assign(results.begin(), results.begin() + static_cast<int64_t>(states));
    for (size_t i = 0; i < outputs; ++i) collected[i].push_back(results[states + i].tensor());
  }
  Values results = std::move(state);
  for (size_t i = 0; i < outputs; ++i) {
    if (reversed[i] != 0) std::ranges::reverse(collected[i]);
    results.emplace_back(joined(collected[i], out_axes[i]));
  }
  return results;
}

constexpr OperatorRow kRows[] = {{"If", if_}, {"Loop", loop}, {"Scan", scan}};

}  // namespace

std::span<const OperatorRow> control_operators() {
  return kRows;
}

}  // namespace plugrad::onnx
