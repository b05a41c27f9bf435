// Branches and loops.
#include <algorithm>

#include "base/check.h"
#include "onnx/import/strings_as_ids.h"
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

Value collected_of(Call& call, const Values& steps, int64_t axis, const TypeMessage& type) {
  if (steps.empty()) return nothing_of(type);
  return moved(call, steps,
               [&](const std::vector<Tensor>& tensors) { return Value(stack(tensors, axis)); });
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
  std::vector<Values> collected(body.outputs.size() - 1 - carried_count);
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
      collected[i].push_back(results[1 + carried_count + i]);
  }
  Values results = std::move(carried);
  for (size_t i = 0; i < collected.size(); ++i)
    results.push_back(
        collected_of(call, collected[i], 0, body.outputs[1 + carried_count + i].type));
  return results;
}

// The steps of a scan.
struct ScanRun {
  Call& call;
  const GraphMessage& body;
  std::vector<int64_t> axes, backwards;  // of each scanned input
  std::vector<Values> collected;         // of each scanned output

  Values run(Values state, const Values& scanned, int64_t steps) {
    const size_t states = state.size();
    if (body.outputs.size() < states) call.wrong("the body has fewer outputs than states");
    if (axes.size() != scanned.size() || backwards.size() != scanned.size())
      call.wrong("axes and directions need a number for each scanned input");
    collected.assign(body.outputs.size() - states, {});
    for (int64_t step = 0; step < steps; ++step) {
      Values given = state;
      for (size_t i = 0; i < scanned.size(); ++i)
        given.push_back(at(scanned[i], axes[i], backwards[i] != 0 ? steps - 1 - step : step));
      Values results = call.recording().run(body, given);
      state.assign(results.begin(), results.begin() + static_cast<int64_t>(states));
      for (size_t i = 0; i < collected.size(); ++i) collected[i].push_back(results[states + i]);
    }
    return state;
  }

  Value at(const Value& x, int64_t axis, int64_t index) const {
    return moved(call, {x}, [&](const std::vector<Tensor>& tensors) {
      const int64_t from_start = axis < 0 ? axis + tensors[0].ndim() : axis;
      return Value(tensors[0].slice(from_start, {index, index + 1}).squeeze(from_start));
    });
  }
};

Shape shape_of(Call& call, const Value& x) {
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
  ScanRun scan{call,
               body,
               std::vector<int64_t>(inputs, 0),
               call.integers("directions", std::vector<int64_t>(inputs, 0)),
               {}};
  const Shape sizes = shape_of(call, call.value(1 + states));
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
    state = scan.run(std::move(state), scanned, lengths[static_cast<size_t>(batch)]);
    for (size_t i = 0; i < states; ++i) of_batches[i].push_back(state[i]);
    for (size_t i = 0; i < scan.collected.size(); ++i) {
      const Value steps = collected_of(call, scan.collected[i], 0, body.outputs[states + i].type);
      of_batches[states + i].push_back(moved(call, {steps}, [&](const auto& tensors) {
        std::vector<Pads::Pair> pads(static_cast<size_t>(tensors[0].ndim()));
        pads[0].second = sizes[1] - tensors[0].size(0);
        return Value(tensors[0].pad(pads));
      }));
    }
  }
  Values results;
  for (size_t i = 0; i < of_batches.size(); ++i)
    results.push_back(collected_of(call, of_batches[i], 0, body.outputs[i].type));
  return results;
}

Values scan(Call& call) {
  if (call.opset() < 9) return scan_of_batches(call);
  const GraphMessage& body = call.graph("body");
  const auto inputs = static_cast<size_t>(call.integer("num_scan_inputs", 1));
  if (inputs == 0 || call.input_count() < inputs) call.wrong("num_scan_inputs is too large");
  const size_t states = call.input_count() - inputs;
  const size_t outputs = body.outputs.size() - std::min(states, body.outputs.size());
  const auto out_axes = call.integers("scan_output_axes", std::vector<int64_t>(outputs, 0));
  const auto reversed = call.integers("scan_output_directions", std::vector<int64_t>(outputs, 0));
  ScanRun scan{call,
               body,
               call.integers("scan_input_axes", std::vector<int64_t>(inputs, 0)),
               call.integers("scan_input_directions", std::vector<int64_t>(inputs, 0)),
               {}};
  Values state, scanned;
  for (size_t i = 0; i < call.input_count(); ++i)
    (i < states ? state : scanned).push_back(call.value(i));
  const Shape sizes = shape_of(call, scanned[0]);
  const int64_t rank = std::ssize(sizes), first = scan.axes.empty() ? rank : scan.axes[0];
  if (first < -rank || first >= rank || out_axes.size() != outputs || reversed.size() != outputs)
    call.wrong("scan axes and directions do not fit the inputs and outputs");
  const int64_t steps = sizes[static_cast<size_t>(first < 0 ? first + rank : first)];
  Values results = scan.run(std::move(state), scanned, steps);
  for (size_t i = 0; i < outputs; ++i) {
    if (reversed[i] != 0) std::ranges::reverse(scan.collected[i]);
    results.push_back(
        collected_of(call, scan.collected[i], out_axes[i], body.outputs[states + i].type));
  }
  return results;
}

constexpr OperatorRow kRows[] = {{"If", if_}, {"Loop", loop}, {"Scan", scan}};

}  // namespace

std::span<const OperatorRow> control_operators() {
  return kRows;
}

}  // namespace plugrad::onnx
