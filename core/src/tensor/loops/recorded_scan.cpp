// Turns scan() into a loop: records the step with placeholders, checks it, and calls the loop.
#include <algorithm>

#include "plugrad/functional.h"
#include "plugrad/scan.h"
#include "tensor/handles.h"
#include "tensor/lazy_text.h"
#include "tensor/loops/loop_gradient.h"

namespace plugrad {

using tensor::AxisSize;
using tensor::LoopArrays;
using tensor::LoopStep;
using tensor::Recorder;
using Tensors = std::vector<Tensor>;

namespace {

constexpr std::string_view kScanName = "scan";

void check_arguments(const ScanStep& step, const Tensors& state, const Tensors& inputs) {
  require(step != nullptr, "[scan] there is no step");
  require(!inputs.empty(),
          "[scan] there are no inputs, whose first axis says how many steps there are; "
          "Tensor::arange(n) is one where there is no other");
  for (size_t i = 0; i < state.size(); ++i)
    require(state[i].defined(), "[scan] state {} is undefined", i);
  for (size_t i = 0; i < inputs.size(); ++i) {
    require(inputs[i].defined(), "[scan] input {} is undefined", i);
    require(inputs[i].ndim() > 0, "[scan] input {} has no axis to step along", i);
  }
  const AxisSize length = tensor::axis_size(inputs[0], 0);
  for (size_t i = 1; i < inputs.size(); ++i) {
    const AxisSize own = tensor::axis_size(inputs[i], 0);
    const bool is_same =
        inputs[i].size(0) == inputs[0].size(0) && own.varies == length.varies &&
        (!own.varies || tensor::state_of(own.count)->node == tensor::state_of(length.count)->node);
    require(is_same, "[scan] input {} is {}, input 0 {}: their first axes differ in size", i,
            tensor::shown_shape(inputs[i]), tensor::shown_shape(inputs[0]));
  }
}

Tensor checked_state(size_t number, const Tensor& before, const Tensor& after) {
  require(after.defined(), "[scan] the step returns an undefined state {}", number);
  Recorder r(kScanName);
  Id node = r.use(after);
  const DType dtype = strong(before.dtype());
  if (strong(r.dtype(node)) != r.dtype(node) && r.shape(node).empty()) node = r.take(node, dtype);
  require(strong(r.dtype(node)) == dtype && r.shape(node) == before.shape(),
          "[scan] the step returns state {} as {} {}, and got it as {} {}; return that shape and "
          "dtype",
          number, name_of(strong(r.dtype(node))), tensor::lazy_text(r.shape(node)), name_of(dtype),
          tensor::lazy_text(before));
  return r.done(node);
}

Tensor checked_output(size_t number, const Tensor& output) {
  require(output.defined(), "[scan] the step returns an undefined output {}", number);
  Recorder r(kScanName);
  const Id node = r.use(output);
  return r.done(r.cast(node, strong(r.dtype(node))));
}

LoopStep record(const ScanStep& step, const Tensors& state, const Tensors& inputs, bool reverse) {
  LoopStep recorded;
  recorded.is_reversed = reverse;
  for (const Tensor& t : state) recorded.states.push_back(tensor::placeholder_like(t, 0));
  for (const Tensor& t : inputs) recorded.inputs.push_back(tensor::placeholder_like(t, 1));
  engine::Session& session = engine::Session::current();
  const uint64_t drawn = session.random().counter;
  const std::vector<Id> assigned = session.pending_nodes();
  const engine::Session::StepScope undo;  // drops assignments that the step makes
  const ScanResult result = step(recorded.states, recorded.inputs);
  require(session.random().counter == drawn,
          "[scan] the step draws random numbers, which would be the same in every step: draw them "
          "for all steps before the loop, and give them as an input");
  require(session.pending_nodes() == assigned,
          "[scan] the step assigns to a tensor; return what changes from step to step as a state");
  require(result.state.size() == state.size(), "[scan] the step returns {} states, and got {}",
          result.state.size(), state.size());
  for (size_t i = 0; i < state.size(); ++i)
    recorded.next_states.push_back(checked_state(i, recorded.states[i], result.state[i]));
  for (size_t i = 0; i < result.outputs.size(); ++i)
    recorded.outputs.push_back(checked_output(i, result.outputs[i]));
  return recorded;
}

/// Gives `array`, which has `one` for each step, the variable sizes of both.
Tensor with_sizes(const Tensor& array, const Tensor& one, const AxisSize& length) {
  Tensor sized = tensor::limited(array, 0, length);
  for (int64_t axis = 0; axis < one.ndim(); ++axis)
    sized = tensor::limited(sized, axis + 1, tensor::axis_size(one, axis));
  return sized;
}

Tensor with_sizes(const Tensor& state, const Tensor& one) {
  Tensor sized = state;
  for (int64_t axis = 0; axis < one.ndim(); ++axis)
    sized = tensor::limited(sized, axis, tensor::axis_size(one, axis));
  return sized;
}

ScanResult empty_loop(const LoopStep& step, const Tensors& state) {
  ScanResult result;
  for (const Tensor& t : state) result.state.push_back(tensor::own_handle(t));
  for (const Tensor& t : step.outputs) {
    Shape shape = t.shape();
    shape.insert(shape.begin(), 0);
    result.outputs.push_back(Tensor::zeros(shape, t.dtype(), t.device()));
  }
  return result;
}

/// Removes outputs that are also a state, to store them once. Returns for each output its index
/// into the states followed by the other outputs.
std::vector<size_t> share_outputs(LoopStep& step) {
  Tensors all = step.next_states;
  std::vector<size_t> numbers;
  for (const Tensor& output : step.outputs) {
    const auto same = std::ranges::find_if(all, [&](const Tensor& t) {
      return tensor::state_of(t)->node == tensor::state_of(output)->node;
    });
    numbers.push_back(static_cast<size_t>(same - all.begin()));
    if (same == all.end()) all.push_back(output);
  }
  step.outputs.assign(all.begin() + static_cast<std::ptrdiff_t>(step.next_states.size()),
                      all.end());
  return numbers;
}

bool is_any_sharded(const Tensors& tensors) {
  return std::ranges::any_of(tensors, [](const Tensor& t) { return t.is_sharded(); });
}

/// Calls the step for each element, since a loop has no sharding rule.
ScanResult unrolled(const ScanStep& step, const Tensors& state, const Tensors& inputs,
                    bool reverse) {
  require(!tensor::axis_size(inputs[0], 0).varies,
          "[scan] the inputs have a variable size and the step computes on a mesh: give them a "
          "fixed size");
  const int64_t count = inputs[0].size(0);
  ScanResult result{state, {}};
  std::vector<Tensors> outputs;
  const auto call = [&](const Tensors& now, const Tensors& in) {
    const ScanResult made = step(now, in);
    require(made.state.size() == state.size(), "[scan] the step returns {} states, and got {}",
            made.state.size(), state.size());
    for (size_t i = 0; i < state.size(); ++i)
      result.state[i] = checked_state(i, state[i], made.state[i]);
    outputs.resize(made.outputs.size());
    for (size_t i = 0; i < made.outputs.size(); ++i)
      outputs[i].push_back(checked_output(i, made.outputs[i]));
  };
  for (int64_t i = 0; i < count; ++i) {
    Tensors one;
    for (const Tensor& t : inputs) one.push_back(t[reverse ? count - 1 - i : i]);
    call(Tensors(result.state), one);
  }
  if (count == 0) {  // for the shapes of the outputs
    Tensors zeros;
    for (const Tensor& t : inputs) {
      const Shape shape = t.shape();
      zeros.push_back(Tensor::zeros({shape.begin() + 1, shape.end()}, t.dtype(), t.device()));
    }
    call(state, zeros);
    LoopStep shapes;
    for (const Tensors& steps : outputs) shapes.outputs.push_back(steps[0]);
    return empty_loop(shapes, state);
  }
  for (Tensors& steps : outputs) {
    if (reverse) std::ranges::reverse(steps);
    result.outputs.push_back(stack(steps));
  }
  return result;
}

}  // namespace

ScanResult scan(const ScanStep& step, const Tensors& state, const Tensors& inputs, bool reverse) {
  check_arguments(step, state, inputs);
  if (is_any_sharded(state) || is_any_sharded(inputs))
    return unrolled(step, state, inputs, reverse);
  const engine::Session::Lock lock;  // keeps node ids valid
  LoopStep recorded = record(step, state, inputs, reverse);
  if (inputs[0].size(0) == 0) return empty_loop(recorded, state);
  require(!recorded.next_states.empty() || !recorded.outputs.empty(),
          "[scan] the step returns neither a state nor an output");
  const std::vector<size_t> numbers = share_outputs(recorded);
  const AxisSize length = tensor::axis_size(inputs[0], 0);
  Tensors first, arrays;
  for (size_t i = 0; i < state.size(); ++i)
    first.push_back(tensor::whole(state[i], 0).cast(recorded.states[i].dtype()));
  for (const Tensor& t : inputs) arrays.push_back(tensor::whole(t, 0).cast(strong(t.dtype())));
  const LoopArrays all = tensor::differentiable(recorded, first, arrays, {}, length);
  ScanResult result;
  for (size_t i = 0; i < state.size(); ++i)
    result.state.push_back(with_sizes(tensor::last_state(all.states[i], first[i], length, reverse),
                                      recorded.next_states[i]));
  for (const size_t number : numbers) {
    const bool is_state = number < state.size();
    const size_t own = is_state ? number : number - state.size();
    result.outputs.push_back(
        with_sizes(is_state ? all.states[own] : all.outputs[own],
                   is_state ? recorded.next_states[own] : recorded.outputs[own], length));
  }
  return result;
}

}  // namespace plugrad
