#include "tensor/loops/loop_gradient.h"

#include <algorithm>
#include <functional>

#include "autodiff/gradient.h"
#include "plugrad/function.h"
#include "plugrad/functional.h"
#include "plugrad/operators.h"
#include "tensor/compute_dtype.h"
#include "tensor/function_gradient.h"
#include "tensor/handles.h"
#include "tensor/loops/loop_checks.h"
#include "tensor/loops/loop_products.h"

namespace plugrad {

using tensor::AxisSize;
using tensor::differentiable;
using tensor::last_state;
using tensor::LoopArrays;
using tensor::LoopStep;
using tensor::Recorder;
using Tensors = std::vector<Tensor>;

namespace {

constexpr std::string_view kName = "scan";

Tensor numbers_of(const Tensor& array) {
  Shape shape(static_cast<size_t>(array.ndim()), 1);
  shape[0] = array.size(0);
  return Tensor::arange(array.size(0)).reshape(shape);
}

Tensor part(const Tensor& array, int64_t begin, int64_t end) {
  std::vector<std::pair<int64_t, int64_t>> box;
  for (const int64_t size : array.shape()) box.emplace_back(0, size);
  box[0] = {begin, end};
  return array.shrink(box);
}

Tensor at(const Tensor& array, int64_t index) {
  Shape shape = array.shape();
  shape.erase(shape.begin());
  return part(array, index, index + 1).reshape(shape);
}

/// The state before each step.
Tensor states_before(const Tensor& states, const Tensor& first, const AxisSize& length,
                     bool is_reversed) {
  const int64_t most = states.size(0);
  const Tensor one = first.unsqueeze(0);
  if (!is_reversed) return cat({one, part(states, 0, most - 1)});
  const Tensor before = cat({part(states, 1, most), one});
  return length.varies ? where(numbers_of(states) == length.count - 1, one, before) : before;
}

bool is_zero(const Tensor& t) {
  Recorder r(kName);
  Id node = r.use(t);
  while (is_movement(r.graph()[node].op)) node = r.graph().sources(node)[0];
  return is_const(r.graph(), node) && const_float(r.graph(), node) == 0;
}

/// Undefined for targets on which the loss does not depend.
Tensors target_gradients(const Tensor& loss, const Tensors& targets) {
  if (!loss.defined()) return Tensors(targets.size());
  Recorder r(kName);
  const Id node = r.use(loss);
  std::vector<Id> ids;
  for (const Tensor& target : targets) ids.push_back(tensor::state_of(target)->node);
  autodiff::Context context = tensor::gradient_context(r);
  const Id seed = r.graph().constant(r.dtype(node), int64_t{1});
  Tensors found;
  for (const Id id : autodiff::gradient(context, node, seed, ids))
    found.push_back(id == kNoId ? Tensor() : r.done(id));
  return found;
}

/// A scalar whose gradient with respect to each value is the one given for it.
class Loss {
 public:
  void add(const Tensor& value, const Tensor& gradient) {
    const DType dtype = value.dtype() == DType::F64 ? DType::F64 : DType::F32;
    const Tensor term = (value * gradient).sum().cast(dtype);
    loss_ = loss_.defined() ? loss_ + term : term;
  }
  const Tensor& operator*() const { return loss_; }

 private:
  Tensor loss_;
};

/// The number of tensors of each kind. Inputs of the CustomFunction: the length if it varies,
/// states, inputs, captured tensors. Outputs: the arrays of states, the arrays of outputs, the
/// sums. Saved: the tensors of the step.
struct Counts {
  size_t states, inputs, captured, outputs, terms;
  bool is_reversed, is_counted;
  int64_t least;

  static Counts of(const LoopStep& step, const AxisSize& length) {
    return {step.states.size(), step.inputs.size(), step.captured.size(), step.outputs.size(),
            step.terms.size(),  step.is_reversed,   length.varies,        length.least};
  }
  size_t first_state() const { return is_counted ? 1 : 0; }
  size_t first_input() const { return first_state() + states; }
  size_t first_captured() const { return first_input() + inputs; }
};

Tensors part_of(const Tensors& all, size_t begin, size_t count) {
  const auto from = all.begin() + static_cast<std::ptrdiff_t>(begin);
  return {from, from + static_cast<std::ptrdiff_t>(count)};
}

void append(Tensors& to, const Tensors& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// Builds the loop of the gradient, which runs in the other direction.
class BackwardLoop {
 public:
  BackwardLoop(const Counts& counts, const FunctionContext& context, const Tensors& gradients)
      : counts_(counts), context_(context), given_(gradients) {
    const Tensors& saved = context.saved();
    states_ = part_of(saved, 0, counts.states);
    inputs_ = part_of(saved, counts.states, counts.inputs);
    step_.captured = part_of(saved, counts.states + counts.inputs, counts.captured);
    const size_t results = counts.states + counts.inputs + counts.captured;
    next_states_ = part_of(saved, results, counts.states);
    outputs_ = part_of(saved, results + counts.states, counts.outputs);
    terms_ = part_of(saved, results + counts.states + counts.outputs, counts.terms);
    const Tensors& own = context.inputs();
    first_ = part_of(own, counts.first_state(), counts.states);
    captured_ = part_of(own, counts.first_captured(), counts.captured);
    length_ = counts.is_counted ? AxisSize{own[0], counts.least, true}
                                : AxisSize{Tensor(own[counts.first_input()].size(0)),
                                           own[counts.first_input()].size(0)};
    step_.is_reversed = !counts.is_reversed;
  }

  Tensors gradients() {
    read_forward();
    seed();
    const Tensors found = differentiate();
    return assemble(found);
  }

 private:
  void read(const Tensor& placeholder, const Tensor& array) {
    step_.inputs.push_back(placeholder);
    arrays_.push_back(array);
  }

  // The backward step recomputes the forward step from its states and inputs.
  void read_forward() {
    for (size_t i = 0; i < counts_.inputs; ++i)
      read(inputs_[i], context_.inputs()[counts_.first_input() + i]);
    for (size_t i = 0; i < counts_.states; ++i)
      read(states_[i],
           states_before(context_.outputs()[i], first_[i], length_, counts_.is_reversed));
  }

  // A state gets a gradient from the step after it, and from outside of the loop.
  void seed() {
    for (size_t i = 0; i < counts_.states; ++i) {
      if (!is_float(states_[i].dtype())) continue;
      const Tensor later = tensor::placeholder_like(next_states_[i], 0);
      step_.states.push_back(later);
      starts_.push_back(Tensor::zeros(later.shape(), later.dtype(), later.device()));
      loss_.add(next_states_[i], later);
      seed_from(next_states_[i], given_[i]);
    }
    for (size_t i = 0; i < counts_.outputs; ++i)
      if (is_float(outputs_[i].dtype())) seed_from(outputs_[i], given_[counts_.states + i]);
    for (size_t i = 0; i < counts_.terms; ++i)
      if (const Tensor& sum = given_[counts_.states + counts_.outputs + i]; !is_zero(sum))
        loss_.add(terms_[i], sum);
  }

  void seed_from(const Tensor& value, const Tensor& array) {
    if (is_zero(array)) return;
    const Tensor own = tensor::placeholder_like(value, 0);
    read(own, array);
    loss_.add(value, own);
  }

  /// The targets: float states, then the inputs and captured tensors that need a gradient.
  Tensors differentiate() {
    Tensors targets;
    for (const Tensor& state : states_)
      if (is_float(state.dtype())) targets.push_back(tensor::memory_of(state));
    const Tensors& own = context_.inputs();
    for (size_t i = counts_.first_input(); i < own.size(); ++i)
      if (is_float(own[i].dtype()) && context_.needs_gradient(i)) {
        const bool is_input = i < counts_.first_captured();
        targets.push_back(tensor::memory_of(is_input
                                                ? inputs_[i - counts_.first_input()]
                                                : step_.captured[i - counts_.first_captured()]));
        wanted_.push_back(i);
      }
    return target_gradients(*loss_, targets);
  }

  Tensors assemble(const Tensors& found) {
    const size_t states = step_.states.size();
    for (size_t i = 0; i < states; ++i)
      step_.next_states.push_back(found[i].defined() ? tensor::whole(found[i], 0) : starts_[i]);
    for (size_t i = 0; i < wanted_.size(); ++i)
      if (found[states + i].defined()) ask_for(wanted_[i], found[states + i]);
    if (step_.next_states.empty() && step_.outputs.empty() && step_.terms.empty())
      return Tensors(context_.inputs().size());
    const LoopArrays arrays = differentiable(step_, starts_, arrays_, captured_, length_);
    Tensors result(context_.inputs().size());
    for (size_t i = 0, state = 0; i < counts_.states; ++i) {
      if (!is_float(states_[i].dtype())) continue;
      result[counts_.first_state() + i] =
          last_state(arrays.states[state], starts_[state], length_, step_.is_reversed);
      ++state;
    }
    for (const auto& [input, of] : asked_) result[input] = of(arrays);
    return result;
  }

  /// Adds a result for the gradient of an input: its values in all steps; for a captured tensor,
  /// their sum.
  void ask_for(size_t input, const Tensor& gradient) {
    if (input < counts_.first_captured()) {
      const size_t at = output_of(tensor::whole(gradient, 0));
      asked_.emplace_back(input, [at](const LoopArrays& arrays) { return arrays.outputs[at]; });
      return;
    }
    if (ask_for_product(input, gradient)) return;
    const DType dtype = gradient.dtype();
    const size_t at = step_.terms.size();
    step_.terms.push_back(tensor::whole(gradient, 0).cast(tensor::compute_dtype(dtype)));
    asked_.emplace_back(
        input, [at, dtype](const LoopArrays& arrays) { return arrays.sums[at].cast(dtype); });
  }

  size_t output_of(const Tensor& value) {
    const auto same = std::ranges::find_if(step_.outputs, [&](const Tensor& t) {
      return tensor::state_of(t)->node == tensor::state_of(value)->node;
    });
    const auto at = static_cast<size_t>(same - step_.outputs.begin());
    if (same == step_.outputs.end()) step_.outputs.push_back(value);
    return at;
  }

  /// Replaces a sum to which each step adds a small product by one product over all steps.
  bool ask_for_product(size_t input, const Tensor& gradient) {
    const Tensors factors = tensor::factors_of(gradient);
    const auto is_captured = [&](const Tensor& factor) {
      return std::ranges::any_of(step_.captured, [&](const Tensor& own) {
        return tensor::state_of(tensor::memory_of(own))->node == tensor::state_of(factor)->node;
      });
    };
    if (factors.empty() || std::ranges::any_of(factors, is_captured)) return false;
    std::vector<std::pair<Tensor, std::function<Tensor(const LoopArrays&)>>> arrays;
    for (const Tensor& factor : factors) arrays.emplace_back(factor, array_of(factor));
    asked_.emplace_back(input, [gradient, arrays](const LoopArrays& all) {
      return tensor::summed(gradient, [&](const Tensor& factor) {
        for (const auto& [own, array] : arrays)
          if (tensor::state_of(own)->node == tensor::state_of(factor)->node) return array(all);
        fail(ErrorKind::Internal, "[scan] a factor has no array");
      });
    });
    return true;
  }

  /// A factor's values in all steps: an input of the loop if there is one, else a new output.
  std::function<Tensor(const LoopArrays&)> array_of(const Tensor& factor) {
    const auto is_factor = [&](const Tensor& placeholder) {
      return tensor::state_of(tensor::memory_of(placeholder))->node ==
             tensor::state_of(factor)->node;
    };
    const AxisSize length = length_;
    for (size_t i = 0; i < step_.inputs.size(); ++i)
      if (is_factor(step_.inputs[i]))
        return [array = arrays_[i], length](const LoopArrays&) {
          return tensor::limited(array, 0, length);
        };
    const size_t at = output_of(factor);
    return [at, length](const LoopArrays& arrays) {
      return tensor::limited(arrays.outputs[at], 0, length);
    };
  }

  const Counts& counts_;
  const FunctionContext& context_;
  const Tensors& given_;
  Tensors states_, inputs_, next_states_, outputs_, terms_;  // of the recorded step
  Tensors first_, captured_;                                 // arguments of the forward loop
  AxisSize length_;
  LoopStep step_;
  Tensors starts_, arrays_;  // arguments of the backward loop
  Loss loss_;
  std::vector<size_t> wanted_;  // indices of the function's inputs
  // their gradients
  std::vector<std::pair<size_t, std::function<Tensor(const LoopArrays&)>>> asked_;
};

LoopArrays split(const Tensors& all, const Counts& counts) {
  return {part_of(all, 0, counts.states), part_of(all, counts.states, counts.outputs),
          part_of(all, counts.states + counts.outputs, counts.terms)};
}

}  // namespace

Tensor tensor::last_state(const Tensor& states, const Tensor& first, const AxisSize& length,
                          bool is_reversed) {
  if (!length.varies) return at(states, is_reversed ? 0 : states.size(0) - 1);
  const Tensor is_last = numbers_of(states) == length.count - 1;
  const Tensor last =
      is_reversed ? at(states, 0) : where(is_last, states, 0).sum(0, false, states.dtype());
  return where(length.count > 0, last, first);
}

LoopArrays tensor::differentiable(LoopStep step, const Tensors& states, const Tensors& inputs,
                                  const Tensors& captured, const AxisSize& length) {
  const std::vector<tensor::LoopCheck> checks = tensor::take_checks(step);
  const Tensors more = tensor::close(kName, step);
  const Counts counts = Counts::of(step, length);
  const CustomFunction function{
      std::string(kName),
      [&](FunctionContext& context, const Tensors& in) {
        for (const auto* each : {&step.states, &step.inputs, &step.captured, &step.next_states,
                                 &step.outputs, &step.terms})
          for (const Tensor& t : *each) context.save(t);
        const AxisSize own{length.varies ? in[0] : length.count, length.least, length.varies};
        const LoopArrays arrays =
            call_loop(kName, step, part_of(in, counts.first_state(), counts.states),
                      part_of(in, counts.first_input(), counts.inputs),
                      part_of(in, counts.first_captured(), counts.captured), own);
        Tensors all = arrays.states;
        append(all, arrays.outputs);
        append(all, arrays.sums);
        return all;
      },
      [counts](const FunctionContext& context, const Tensors& gradients) {
        return BackwardLoop(counts, context, gradients).gradients();
      }};
  Tensors arguments;
  if (length.varies) arguments.push_back(length.count);
  append(arguments, states);
  append(arguments, inputs);
  append(arguments, captured);
  append(arguments, more);
  LoopArrays arrays = split(function(arguments), counts);
  tensor::put_checks(arrays, checks, length);
  return arrays;
}

}  // namespace plugrad
