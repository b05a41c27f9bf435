// Branches and loops.
#include <algorithm>

#include "base/check.h"
#include "onnx/import/strings_as_ids.h"
#include "onnx/ops/tables.h"
#include "plugrad/functional.h"
#include "plugrad/scan.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad::onnx {
namespace {

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
    throw NeedsHostValues{.input = 0};
  } catch (const NeedsHostValues&) {  // perhaps that one only
    throw NeedsHostValues{.input = 0};
  }
  Values chosen;
  for (size_t i = 0; i < yes.size() && i < no.size(); ++i) {
    if (!yes[i].is_tensor() || !no[i].is_tensor() ||
        yes[i].tensor().shape() != no[i].tensor().shape() ||
        yes[i].tensor().dtype() != no[i].tensor().dtype())
      throw NeedsHostValues{.input = 0};
    chosen.push_back(
        Value(call[0].reshape({}).where(yes[i].tensor(), no[i].tensor())).as(yes[i].emulated()));
  }
  return chosen;
}

// A result of tensors that moves their elements, also of strings.
template <class Move>
Value moved(Call& call, const Values& values, const Move& move) {
  const StringIds ids(values);
  std::vector<Tensor> tensors;
  for (const Value& value : values) {
    const Value numbers = ids.ids_of(value);
    if (!numbers.is_tensor()) call.wrong("only tensors can be scanned and collected");
    tensors.push_back(numbers.tensor());
  }
  const Value result = move(tensors);
  return ids.is_needed() ? ids.strings_of(result, call.recording().is_jitted)
                         : result.as(values.front().emulated());
}

// What no steps collect.
Value nothing_of(const TypeMessage& type) {
  Shape shape{0};
  for (const auto& dim : type.shape.value_or(std::vector<TypeMessage::Dimension>()))
    shape.push_back(dim.size.value_or(0));
  if (type.element == DataType::String) return Strings{shape, {}};
  return Value(Tensor::zeros(shape, dtype_of(type.element).value_or(DType::F32))).as(type.element);
}

Value collected_of(Call& call, const Values& steps, const TypeMessage& type) {
  if (steps.empty()) return nothing_of(type);
  return moved(call, steps,
               [&](const std::vector<Tensor>& tensors) { return Value(stack(tensors, 0)); });
}

// The results of the steps of a loop: the last states, and the outputs of all steps along a new
// first axis.
struct Looped {
  Values states, outputs;
};
/// One step: its states, then its outputs.
using Body = std::function<Values(const Values& states, const Values& inputs)>;

std::vector<Tensor> tensors_of(const Values& values) {
  std::vector<Tensor> tensors;
  for (const Value& value : values) tensors.push_back(value.tensor());
  return tensors;
}

// The values with the emulated types of those in `types` from `first` on.
Values as_typed(const std::vector<Tensor>& tensors, const Values& types, size_t first = 0) {
  Values values;
  for (const Tensor& tensor : tensors)
    values.push_back(Value(tensor).as(types[first + values.size()].emulated()));
  return values;
}

// Runs the body, recorded once, for each element of the first axis of the inputs. Nothing if each
// step needs a recording of its own, because the host must know an element, or because a state
// changes its shape or is no tensor of numbers.
std::optional<Looped> recorded_once(const Values& states, const Values& inputs, const Body& body) {
  const auto is_tensor = [](const Value& value) { return value.is_tensor(); };
  if (!std::ranges::all_of(states, is_tensor) || !std::ranges::all_of(inputs, is_tensor)) return {};
  Values results;
  const auto step = [&](const std::vector<Tensor>& before, const std::vector<Tensor>& now) {
    results = body(as_typed(before, states), as_typed(now, inputs));
    if (!std::ranges::all_of(results, is_tensor)) throw NeedsHostValues();
    for (size_t i = 0; i < states.size(); ++i)
      if (results[i].emulated() != states[i].emulated()) throw NeedsHostValues();
    const std::vector<Tensor> all = tensors_of(results);
    const auto middle = all.begin() + std::ssize(states);
    return ScanResult{{all.begin(), middle}, {middle, all.end()}};
  };
  try {
    const ScanResult all = plugrad::scan(step, tensors_of(states), tensors_of(inputs));
    return Looped{as_typed(all.state, results), as_typed(all.outputs, results, states.size())};
  } catch (const NeedsHostValues&) {
  } catch (const NeedsExactSizes&) {
  } catch (const Error&) {  // which the first step alone repeats, if it is the model's
  }
  return {};
}

// Steps of a loop that is recorded once. Exporters give a loop that only its condition ends 2^63 - 1.
constexpr int64_t kMostCounted = int64_t{1} << 24;

// A loop whose body cannot end it early.
std::optional<Values> counted_loop(Call& call, const GraphMessage& body, const Values& carried,
                                   int64_t steps) {
  const Value numbers = Tensor::arange(0, steps, 1, DType::I64);
  auto all = recorded_once(carried, {numbers}, [&](const Values& states, const Values& inputs) {
    Values given{inputs[0], Value::known({{}, DType::Bool, {1}})};
    given.insert(given.end(), states.begin(), states.end());
    Values results = call.recording().run(body, given);
    if (!results[0].known() || !is_true(*results[0].known())) throw NeedsHostValues();
    results.erase(results.begin());
    return results;
  });
  if (!all) return {};
  all->states.insert(all->states.end(), all->outputs.begin(), all->outputs.end());
  return std::move(all->states);
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
  if (body.outputs.size() < 1 + carried_count)
    call.wrong(fmt::format("the body has {} outputs, a condition and {} values need more",
                           body.outputs.size(), carried_count));
  if (goes_on && most && *most > kMostUnrolled && *most <= kMostCounted)
    if (auto results = counted_loop(call, body, carried, *most)) return *std::move(results);
  std::vector<Values> collected(body.outputs.size() - 1 - carried_count);
  for (int64_t step = 0; goes_on && (!most || step < *most); ++step) {
    Values given{Value::known({{}, DType::I64, {static_cast<uint64_t>(step)}}),
                 Value::known({{}, DType::Bool, {1}})};
    given.insert(given.end(), carried.begin(), carried.end());
    Values results = call.recording().run(body, given);
    // The condition decides only where the loop may end before `most`.
    if (!results[0].is_tensor()) call.wrong("the body's condition is no tensor");
    if (results[0].known())
      goes_on = is_true(*results[0].known());
    else if (call.recording().is_jitted)
      throw NeedsHostValues();
    else
      goes_on = results[0].tensor().item<bool>();
    for (size_t i = 0; i < carried_count; ++i) carried[i] = results[1 + i];
    for (size_t i = 0; i < collected.size(); ++i)
      collected[i].push_back(results[1 + carried_count + i]);
  }
  Values results = std::move(carried);
  for (size_t i = 0; i < collected.size(); ++i)
    results.push_back(collected_of(call, collected[i], body.outputs[1 + carried_count + i].type));
  return results;
}

// x with axis `from` at place `to`.
Tensor with_axis_at(const Tensor& x, int64_t from, int64_t to) {
  std::vector<int64_t> order;
  for (int64_t axis = 0; axis < x.ndim(); ++axis)
    if (axis != from) order.push_back(axis);
  order.insert(order.begin() + to, from);
  return x.permute(order);
}

// The steps of a scan.
struct ScanRun {
  Call& call;
  const GraphMessage& body;
  std::vector<int64_t> axes, backwards;  // of each scanned input

  Looped run(const Values& states, const Values& scanned, int64_t steps) const {
    if (body.outputs.size() < states.size()) call.wrong("the body has fewer outputs than states");
    if (axes.size() != scanned.size() || backwards.size() != scanned.size())
      call.wrong("axes and directions need a number for each scanned input");
    if (steps > kMostUnrolled || has_variable_steps(scanned))
      if (auto all = run_looped(states, scanned)) return *std::move(all);
    for (size_t i = 0; i < scanned.size(); ++i)
      if (scanned[i].is_tensor()) call.require_fixed(scanned[i].tensor(), axis_of(scanned[i], i));
    return run_unrolled(states, scanned, steps);
  }

  int64_t axis_of(const Value& x, size_t i) const { return call.axis(axes[i], x.tensor().ndim()); }

  bool has_variable_steps(const Values& scanned) const {
    for (size_t i = 0; i < scanned.size(); ++i)
      if (scanned[i].is_tensor() && !scanned[i].known() &&
          tensor::has_variable_size(scanned[i].tensor(), axis_of(scanned[i], i)))
        return true;
    return false;
  }

  Values step(const Values& states, const Values& inputs) const {
    Values given = states;
    given.insert(given.end(), inputs.begin(), inputs.end());
    return call.recording().run(body, given);
  }

  std::optional<Looped> run_looped(const Values& states, const Values& scanned) const {
    Values inputs;
    for (size_t i = 0; i < scanned.size(); ++i) {
      if (!scanned[i].is_tensor()) return {};
      const Tensor& x = scanned[i].tensor();
      const Tensor first = with_axis_at(x, axis_of(scanned[i], i), 0);
      inputs.push_back(
          Value(backwards[i] != 0 ? first.flip({0}) : first).as(scanned[i].emulated()));
    }
    return recorded_once(
        states, inputs, [&](const Values& before, const Values& now) { return step(before, now); });
  }

  Looped run_unrolled(Values states, const Values& scanned, int64_t steps) const {
    std::vector<Values> collected(body.outputs.size() - states.size());
    for (int64_t number = 0; number < steps; ++number) {
      Values inputs;
      for (size_t i = 0; i < scanned.size(); ++i)
        inputs.push_back(at(scanned[i], axes[i], backwards[i] != 0 ? steps - 1 - number : number));
      const Values results = step(states, inputs);
      const auto middle = results.begin() + std::ssize(states);
      states.assign(results.begin(), middle);
      for (size_t i = 0; i < collected.size(); ++i)
        collected[i].push_back(*(middle + static_cast<int64_t>(i)));
    }
    Values outputs;
    for (size_t i = 0; i < collected.size(); ++i)
      outputs.push_back(collected_of(call, collected[i], body.outputs[states.size() + i].type));
    return {std::move(states), std::move(outputs)};
  }

  Value at(const Value& x, int64_t axis, int64_t index) const {
    return moved(call, {x}, [&](const std::vector<Tensor>& tensors) {
      const int64_t from = call.axis(axis, tensors[0].ndim());
      return Value(tensors[0].slice(from, {index, index + 1}).squeeze(from));
    });
  }
};

Shape scanned_shape(Call& call, const Value& x) {
  if (x.strings()) return x.strings()->shape;
  if (!x.is_tensor()) call.wrong("only tensors can be scanned");
  return x.tensor().shape();
}

// Operator set 8 had a batch as first axis and the steps as second, and lengths of the sequences
// before the states.
Values scan_of_batches(Call& call) {
  const GraphMessage& body = call.graph("body");
  const auto inputs = static_cast<size_t>(call.integer("num_scan_inputs", 1));
  if (inputs == 0 || call.input_count() < inputs + 1) call.wrong("num_scan_inputs is too large");
  const size_t states = call.input_count() - 1 - inputs;
  ScanRun scan{call, body, std::vector<int64_t>(inputs, 0),
               call.integers("directions", std::vector<int64_t>(inputs, 0))};
  const Shape sizes = scanned_shape(call, call.value(1 + states));
  if (sizes.size() < 2) call.wrong("a scanned input needs a batch axis and an axis of steps");
  const std::vector<int64_t> lengths =
      call.has(0) ? call.integers(0)
                  : std::vector<int64_t>(static_cast<size_t>(sizes[0]), sizes[1]);
  if (std::ssize(lengths) != sizes[0] ||
      std::ranges::any_of(lengths, [&](int64_t n) { return n < 0 || n > sizes[1]; }))
    call.wrong("sequence_lens needs a length up to the number of steps for each of the batch");
  std::vector<Values> of_batches(body.outputs.size());
  for (int64_t batch = 0; batch < sizes[0]; ++batch) {
    Values state, scanned;
    for (size_t i = 0; i < states; ++i) state.push_back(scan.at(call.value(1 + i), 0, batch));
    for (size_t i = 0; i < inputs; ++i)
      scanned.push_back(scan.at(call.value(1 + states + i), 0, batch));
    const int64_t steps = lengths[static_cast<size_t>(batch)];
    for (size_t i = 0; i < inputs; ++i)
      scanned[i] = moved(call, {scanned[i]}, [&](const auto& tensors) {
        return Value(tensors[0].slice(0, {0, steps}));
      });
    const Looped all = scan.run(state, scanned, steps);
    for (size_t i = 0; i < states; ++i) of_batches[i].push_back(all.states[i]);
    for (size_t i = 0; i < all.outputs.size(); ++i)
      of_batches[states + i].push_back(moved(call, {all.outputs[i]}, [&](const auto& tensors) {
        std::vector<Pads::Pair> pads(static_cast<size_t>(tensors[0].ndim()));
        pads[0].second = sizes[1] - tensors[0].size(0);
        return Value(tensors[0].pad(pads));
      }));
  }
  Values results;
  for (size_t i = 0; i < of_batches.size(); ++i)
    results.push_back(collected_of(call, of_batches[i], body.outputs[i].type));
  return results;
}

Values scan_(Call& call) {
  if (call.opset() < 9) return scan_of_batches(call);
  const GraphMessage& body = call.graph("body");
  const auto inputs = static_cast<size_t>(call.integer("num_scan_inputs", 1));
  if (inputs == 0 || call.input_count() < inputs) call.wrong("num_scan_inputs is too large");
  const size_t states = call.input_count() - inputs;
  const size_t outputs = body.outputs.size() - std::min(states, body.outputs.size());
  const auto out_axes = call.integers("scan_output_axes", std::vector<int64_t>(outputs, 0));
  const auto reversed = call.integers("scan_output_directions", std::vector<int64_t>(outputs, 0));
  ScanRun scan{call, body, call.integers("scan_input_axes", std::vector<int64_t>(inputs, 0)),
               call.integers("scan_input_directions", std::vector<int64_t>(inputs, 0))};
  Values state, scanned;
  for (size_t i = 0; i < call.input_count(); ++i)
    (i < states ? state : scanned).push_back(call.value(i));
  if (scan.axes.empty() || out_axes.size() != outputs || reversed.size() != outputs)
    call.wrong("scan axes and directions do not fit the inputs and outputs");
  const Shape sizes = scanned_shape(call, scanned[0]);
  const int64_t steps = sizes[static_cast<size_t>(call.axis(scan.axes[0], std::ssize(sizes)))];
  Looped all = scan.run(state, scanned, steps);
  Values results = std::move(all.states);
  for (size_t i = 0; i < outputs; ++i)
    results.push_back(moved(call, {all.outputs[i]}, [&](const std::vector<Tensor>& tensors) {
      const Tensor in_order = reversed[i] != 0 ? tensors[0].flip({0}) : tensors[0];
      return Value(with_axis_at(in_order, 0, call.axis(out_axes[i], in_order.ndim())));
    }));
  return results;
}

constexpr OperatorRow kControlRows[] = {
    {"If", if_, kVariableSizes}, {"Loop", loop}, {"Scan", scan_, kVariableSizes}};

}  // namespace

std::span<const OperatorRow> control_operators() {
  return kControlRows;
}

}  // namespace plugrad::onnx
