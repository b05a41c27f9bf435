#include "tensor/loops/recorded_loop.h"

#include <algorithm>

#include "engine/execute/loop_body.h"
#include "ir/user.h"
#include "tensor/handles.h"

namespace plugrad::tensor {
namespace {

bool is_view_of_elements(Op op) {
  return (is_movement(op) && op != Op::Pad) || op == Op::Bounded;
}

class Captures {
 public:
  Captures(Recorder& r, std::span<const Id> placeholders, std::span<const Id> roots)
      : r_(r), depends_(r.graph().size()) {
    for (const Id id : placeholders) depends_[id] = true;
    Reachable reachable;
    for (const Id id : reachable.from(r.graph(), roots)) visit(id);
    for (const Id id : roots)
      if (!depends_[id]) capture(id);
  }
  const std::vector<Id>& found() const { return found_; }

 private:
  // Nodes are visited after their sources.
  void visit(Id id) {
    if (depends_[id]) return;
    const auto sources = used_sources(r_, id);
    if (std::ranges::none_of(sources, [&](Id s) { return depends_[s]; })) return;
    depends_[id] = true;
    require(r_.graph()[id].op != Op::Copy,
            "[{}] the step copies from a device to another one; copy before the loop, or after it",
            r_.function());
    for (const Id s : sources)
      if (!depends_[s]) capture(s);
  }

  void capture(Id id) {
    while (is_view_of_elements(r_.graph()[id].op)) {
      if (r_.graph()[id].op == Op::Bounded) capture(r_.graph().sources(id)[1]);
      id = r_.graph().sources(id)[0];
    }
    // Made of constants only: each step computes it, unless a gradient flows to it.
    if (r_.session().devices()[id] == 0 && !r_.session().is_tracked(id)) return;
    if (std::ranges::find(found_, id) == found_.end()) found_.push_back(id);
  }

  Recorder& r_;
  std::vector<bool> depends_;
  std::vector<Id> found_;
};

/// Rebuilds nodes with some of their sources replaced.
class LoopSubstitution {
 public:
  LoopSubstitution(Recorder& r, std::span<const Id> old, std::span<const Id> own,
                   std::span<const Id> roots)
      : new_id_(r.graph().size(), kNoId) {
    for (size_t i = 0; i < old.size(); ++i) new_id_[old[i]] = own[i];
    Reachable reachable;
    const auto is_replaced = [&](Id id) { return new_id_[id] != kNoId; };
    const std::vector<Id> nodes = reachable.from(r.graph(), roots, is_replaced);
    for (const Id id : nodes)
      if (new_id_[id] == kNoId) new_id_[id] = rebuilt(r, id);
  }
  Id operator()(Id id) const { return new_id_[id]; }

 private:
  Id rebuilt(Recorder& r, Id id) {
    const auto sources = r.graph().sources(id);
    std::vector<Id> own(sources.begin(), sources.end());
    for (Id& s : own) s = new_id_[s];
    return std::ranges::equal(own, sources) ? id : r.graph().with_sources(id, own);
  }
  std::vector<Id> new_id_;
};

std::vector<Id> nodes_of(const std::vector<Tensor>& tensors) {
  std::vector<Id> nodes;
  for (const Tensor& t : tensors) nodes.push_back(state_of(t)->node);
  return nodes;
}

void append(std::vector<Id>& nodes, const std::vector<Tensor>& tensors) {
  const std::vector<Id> more = nodes_of(tensors);
  nodes.insert(nodes.end(), more.begin(), more.end());
}

uint32_t device_of(Recorder& r, std::span<const Id> nodes, uint32_t of_constants = 0) {
  for (const Id id : nodes)
    if (const uint32_t device = r.session().devices()[id]) return device;
  return of_constants != 0 ? of_constants : r.session().default_device();
}

/// Pads each element of the first axis to the loop's stride: (length, stride).
Tensor spread(const Tensor& array) {
  const int64_t length = array.size(0);
  const int64_t elem_count = array.numel() / std::max<int64_t>(length, 1);
  const int64_t stride = engine::loop_stride(elem_count, array.dtype());
  return array.reshape({length, elem_count}).pad({{0, 0}, {0, stride - elem_count}});
}

Tensor gathered(const Tensor& spread_array, const Shape& shape_of_one) {
  const int64_t length = spread_array.size(0);
  Shape shape = {length};
  shape.insert(shape.end(), shape_of_one.begin(), shape_of_one.end());
  return spread_array.shrink({{0, length}, {0, element_count(shape_of_one)}}).reshape(shape);
}

/// The node below variable sizes: a step is given its memory.
Id stored(Recorder& r, Id node) {
  while (r.graph()[node].op == Op::Bounded) node = r.graph().sources(node)[0];
  return node;
}

/// Builds the nodes of a loop, one for each output, from a step and its arguments.
class LoopCall {
 public:
  LoopCall(Recorder& r, const LoopStep& step, const AxisSize& length) : r_(r), step_(step) {
    std::vector<Id> roots;
    for (const auto* part : {&step.next_states, &step.outputs, &step.terms}) append(roots, *part);
    reached_ = Reachable().from(r.graph(), roots);
    nodes_.is_counted = length.varies;
    nodes_.is_reversed = step.is_reversed;
    if (length.varies) sources_.push_back(r.use(length.count));
  }

  // Inputs that no step reads are not stored, except one if there is no other: it has the number of
  // steps.
  void give(const std::vector<Tensor>& states, const std::vector<Tensor>& inputs,
            const std::vector<Tensor>& captured) {
    for (size_t i = 0; i < states.size(); ++i) {
      nodes_.states.push_back(stored(r_, state_of(step_.states[i])->node));
      const Id first = r_.use(whole(states[i], 0));
      sources_.push_back(r_.cast(first, r_.dtype(nodes_.states.back())));
    }
    const auto needed = [&](const Tensor& t) { return is_needed(t); };
    const bool any = std::ranges::any_of(step_.inputs, needed);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (any ? !is_needed(step_.inputs[i]) : i > 0) continue;
      nodes_.stepped.push_back(stored(r_, state_of(step_.inputs[i])->node));
      sources_.push_back(r_.use(spread(whole(inputs[i], 0))));
    }
    for (size_t i = 0; i < captured.size(); ++i) {
      if (!is_needed(step_.captured[i])) continue;
      nodes_.captured.push_back(stored(r_, state_of(step_.captured[i])->node));
      sources_.push_back(r_.use(whole(captured[i], 0)));
    }
  }

  LoopArrays arrays(int64_t length) {
    name_outputs(length);
    const uint32_t number =
        r_.session().loops().add(engine::make_loop_body(r_.session(), nodes_)) | kLoopBit;
    list_[0] = number;
    LoopArrays arrays;
    size_t next = 0;
    for (const Tensor& state : step_.next_states)
      arrays.states.push_back(gathered(output(next++), state.shape()));
    for (const Tensor& out : step_.outputs)
      arrays.outputs.push_back(gathered(output(next++), out.shape()));
    for (size_t i = 0; i < step_.terms.size(); ++i) arrays.sums.push_back(output(next++));
    return arrays;
  }

 private:
  bool is_needed(const Tensor& placeholder) {
    return std::ranges::binary_search(reached_, stored(r_, state_of(placeholder)->node));
  }

  void put_form(DType dtype, const Shape& shape) {
    ++list_[2];
    list_.push_back(static_cast<int64_t>(dtype));
    list_.push_back(static_cast<int64_t>(shape.size()));
    list_.insert(list_.end(), shape.begin(), shape.end());
  }

  void name_outputs(int64_t length) {
    nodes_.next_states = nodes_of(step_.next_states);
    nodes_.outputs = nodes_of(step_.outputs);
    for (const auto* part : {&nodes_.next_states, &nodes_.outputs})
      for (const Id id : *part) {
        const DType dtype = r_.dtype(id);
        put_form(dtype, {length, engine::loop_stride(element_count(r_.shape(id)), dtype)});
      }
    const uint32_t device = device_of(r_, sources_);
    for (const Id term : nodes_of(step_.terms)) {
      const Id sum = r_.session().placeholder(r_.shape(term), r_.dtype(term), device);
      nodes_.sums.push_back(sum);
      nodes_.next_sums.push_back(r_.graph().binary(Op::Add, sum, term));
    }
    for (int copies = 0; copies < 2; ++copies)
      for (const Id id : nodes_.sums) put_form(r_.dtype(id), r_.shape(id));
  }

  Tensor output(size_t number) {
    list_[1] = static_cast<int64_t>(number);
    const DType dtype = UserKernelArg(list_).form(static_cast<uint32_t>(number)).dtype;
    return r_.done(r_.graph().add(Op::UserKernel, dtype, sources_, r_.graph().list(list_)));
  }

  Recorder& r_;
  const LoopStep& step_;
  std::vector<Id> reached_;  // sorted
  engine::LoopNodes nodes_;
  std::vector<Id> sources_;
  // loop number, output index, number of outputs, their forms
  std::vector<int64_t> list_ = {0, 0, 0};
};

}  // namespace

std::span<const Id> used_sources(Recorder& r, Id id) {
  const auto sources = r.graph().sources(id);
  const Node& node = r.graph()[id];
  if (node.op != Op::Function || is_range_check(node)) return sources;
  const uint64_t call = function_call(node.arg);
  const auto& calls = r.session().functions();
  const bool is_known = call != kSlopeCall && calls.contains(call);  // else a value only
  return sources.first(is_known ? 1 + calls[call]->input_count : 1);
}

Tensor placeholder_like(const Tensor& like, size_t skipped, uint32_t of_constants) {
  Recorder r("scan");
  const Id model = r.use(like);
  Shape shape = r.shape(model);
  shape.erase(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(skipped));
  const uint32_t device = device_of(r, std::span(&model, 1), of_constants);
  Id node = r.session().placeholder(shape, strong(r.dtype(model)), device);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const Extent e = r.extent(model, static_cast<int64_t>(axis + skipped));
    if (e.is_counted())
      node = r.session().bound(node, static_cast<int64_t>(axis), e.count, e.least);
  }
  return r.done(node);
}

Tensor memory_of(const Tensor& placeholder) {
  Recorder r("scan");
  return r.done(stored(r, state_of(placeholder)->node));
}

std::vector<Tensor> close(std::string_view function, LoopStep& step) {
  Recorder r(function);
  std::vector<Tensor> replaced;
  while (true) {  // the variable sizes of captured values are captured in a later iteration
    std::vector<Id> placeholders, roots;
    for (const auto* part : {&step.states, &step.inputs, &step.captured})
      for (const Id id : nodes_of(*part)) placeholders.push_back(stored(r, id));
    for (const auto* part : {&step.next_states, &step.outputs, &step.terms}) append(roots, *part);
    const std::vector<Id> found = Captures(r, placeholders, roots).found();
    if (found.empty()) return replaced;
    const uint32_t device = device_of(r, placeholders);
    std::vector<Id> own;
    for (const Id id : found) {
      replaced.push_back(tensor_of(r.session().make(id)));
      step.captured.push_back(placeholder_like(replaced.back(), 0, device));
      own.push_back(state_of(step.captured.back())->node);
    }
    const LoopSubstitution substitute(r, found, own, roots);
    for (auto* part : {&step.next_states, &step.outputs, &step.terms})
      for (Tensor& t : *part) t = r.done(substitute(state_of(t)->node));
  }
}

LoopArrays call_loop(std::string_view function, const LoopStep& step,
                     const std::vector<Tensor>& states, const std::vector<Tensor>& inputs,
                     const std::vector<Tensor>& captured, const AxisSize& length) {
  Recorder r(function);
  LoopCall call(r, step, length);
  call.give(states, inputs, captured);
  return call.arrays(inputs[0].size(0));
}

}  // namespace plugrad::tensor
