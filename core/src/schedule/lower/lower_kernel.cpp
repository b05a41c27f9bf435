#include "schedule/lower/lower_kernel.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "ir/kernel_ast.h"
#include "ir/range.h"
#include "plugrad/plugin_api/kernel_ir.h"
#include "schedule/lower/contraction.h"
#include "symbolic/symbolic.h"

namespace plugrad::schedule {

void KernelLowering::begin(const std::vector<Id>& outputs, Graph& graph, Simplifier& simplifier) {
  for (Id id : touched_) first_[id] = kNone;
  first_.resize(state_.graph.size(), kNone);
  touched_.clear();
  instances_.clear();
  loops_.assign(1, Loops{0, 0, 0, {}});
  runs_.clear();
  params_.clear();
  slots_.clear();
  numbers_.clear();
  outputs_.clear();
  ranges_.clear();
  next_axis_ = 0;
  is_exact_ = false;
  graph_ = &graph;
  indexing_ = std::make_unique<Indexing>(graph);
  simplify_ = [&](Id id) { return simplifier(id); };
  device_ = state_.devices[outputs[0]];
  make_output_loops(outputs[0]);
  for (Id node : outputs) {
    outputs_.push_back({node, kNoId, kNoId});
    slot_of(node);
  }
  find_phases(outputs);
}

LoweredKernel KernelLowering::lower(const std::vector<Id>& outputs) {
  auto ast = std::make_shared<KernelAst>();
  Graph& g = ast->graph;
  Simplifier simplifier(g, state_.options.fast_math ? RuleSet::Fast : RuleSet::Strict);
  begin(outputs, g, simplifier);
  std::vector<Id> stores;
  for (Id node : outputs) stores.push_back(store(node));
  for (size_t i = 0; i < stores.size(); ++i) stores[i] = with_limits(stores[i], outputs[i]);
  ast->sink = simplifier(mark_local_buffers(g.add(Op::Sink, DType::Void, stores)));
  ast->param_count = static_cast<uint32_t>(params_.size());
  ast->is_exact = is_exact_ || must_not_contract(g, ast->sink);
  return {std::move(ast), params_, numbers_};
}

/// The axes of a stored value, outermost in memory first.
Dims KernelLowering::axis_order(Id node) const {
  if (const auto own = state_.order.find(node); own != state_.order.end()) return own->second;
  Dims order(state_.shapes[node].size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// One loop for each axis, outermost in memory first.
void KernelLowering::make_output_loops(Id output) {
  const auto shape = state_.shapes[output];
  std::vector<Id> by_axis(shape.size(), kNoId);
  for (int64_t axis : axis_order(output)) {
    const int64_t size = shape[static_cast<size_t>(axis)];
    if (size != 1)
      by_axis[static_cast<size_t>(axis)] = make_range(*graph_, size, next_axis_++, AxisKind::Loop);
  }
  for (Id range : by_axis)
    if (range != kNoId) ranges_.push_back(range);
}

/// The offset of an element of a stored value.
Id KernelLowering::element(Id node, std::span<const Id> index) {
  const auto own = state_.order.find(node);
  const auto shape = state_.shapes[node];
  if (own == state_.order.end()) return simplify_(indexing_->flatten(index, shape));
  const auto block = state_.blocks.find(node);
  const int64_t size = block == state_.blocks.end() ? 0 : block->second;
  return simplify_(indexing_->flatten(index, shape, own->second, size));
}

std::vector<Id> KernelLowering::output_index(Id output) {
  std::vector<Id> index;
  size_t next = 0;
  for (int64_t size : state_.shapes[output])
    index.push_back(size == 1 ? graph_->index(0) : ranges_[next++]);
  return index;
}

Id KernelLowering::store(Id node) {
  const std::vector<Id> index = output_index(node);
  const Id value = lower_value(node, index_list(index));
  const Id flat = element(node, index);
  for (Output& o : outputs_)
    if (o.node == node) o = {node, flat, value};
  return graph_->add(Op::Store, DType::Void, {param(node), flat, value});
}

/// Adds the output's limits to the store, as a gate that codegen may use to skip elements.
/// Positions count elements from the start of the axis, so that merged axes keep one limit.
Id KernelLowering::with_limits(Id store, Id node) {
  const auto limits = state_.limits.find(node);
  if (limits == state_.limits.end()) return store;
  Graph& g = *graph_;
  const std::vector<Id> index = output_index(node);
  const auto shape = state_.shapes[node];
  const Dims order = axis_order(node);
  Id gate = kNoId;
  for (const Limit& limit : limits->second) {
    if (shape[limit.axis] == 1 || !may_read(leaves_of_count(state_.graph, limit.count))) continue;
    Id position = g.index(0);
    int64_t stride = 1;
    for (size_t i = order.size(); i-- > 0;) {
      const auto axis = static_cast<size_t>(order[i]);
      position = indexing_->add(position, indexing_->mul(index[axis], stride));
      if (axis == limit.axis) break;
      stride *= shape[axis];
    }
    const Id count = g.cast(lower_count(limit.count), DType::Index);
    const Id hint =
        g.add(Op::Bounded, DType::Bool,
              {simplify_(position), simplify_(indexing_->mul(count, stride))}, g.list({}));
    gate = indexing_->both(gate, hint);
  }
  if (gate == kNoId) return store;
  const auto parts = g.sources(store);
  return g.add(Op::Store, DType::Void, {parts[0], parts[1], parts[2], gate});
}

/// From its leaves, where another kernel stores it too: this one may run before that.
Id KernelLowering::lower_count(Id count) {
  const Node n = state_.graph[count];
  if (n.op != Op::Add && n.op != Op::Mul && n.op != Op::Max)
    return lower_value(count, graph_->list({}));
  return graph_->binary(n.op, lower_count(n.src[0]), lower_count(n.src[1]));
}

/// Whether the kernel may take these parameters, too.
bool KernelLowering::may_read(std::span<const Id> leaves) const {
  size_t count = params_.size();
  for (Id leaf : leaves) {
    if (state_.devices[leaf] != device_) return false;
    count += slots_.contains(leaf) ? 0 : 1;
  }
  return count <= state_.options.max_params;
}

/// Lowers with a stack of instances; an instance is finished after its sources.
Id KernelLowering::lower_value(Id root, ListId index) {
  const uint32_t top = instance(root, index, kNoId, 0);
  stack_.assign(1, top);
  while (!stack_.empty()) {
    const uint32_t at = stack_.back();
    if (instances_[at].value != kNoId) {
      stack_.pop_back();
      continue;
    }
    if (!instances_[at].entered) {
      Instance entered = instances_[at];
      enter(entered);
      entered.entered = true;
      entered.next = instances_[at].next;
      instances_[at] = entered;
      if (entered.value != kNoId) continue;
      for (Id s : state_.graph.sources(entered.node)) {
        const uint32_t below = source_instance(entered, s);
        if (instances_[below].value == kNoId) stack_.push_back(below);
      }
      continue;
    }
    const Instance done = instances_[at];
    instances_[at].value = finish(done);
    stack_.pop_back();
  }
  return instances_[top].value;
}

void KernelLowering::find_phases(const std::vector<Id>& outputs) {
  const Graph& g = state_.graph;
  phase_.resize(g.size(), 0);
  Reachable& reachable = state_.reachable;
  const auto is_read = [&](Id id) { return output(id) == nullptr && is_leaf(id); };
  for (Id id : reachable.from(g, outputs, is_read)) {
    phase_[id] = 0;
    if (is_read(id)) continue;
    for (Id s : g.sources(id)) phase_[id] = std::max(phase_[id], phase_[s]);
    phase_[id] += g[id].op == Op::Reduce ? 1 : 0;
  }
}

/// The reduce loops that a node of the kernel depends on, as bits.
uint64_t KernelLowering::runs_along(Id id) {
  for (Id at = static_cast<Id>(runs_.size()); at <= id; ++at) {
    uint64_t runs = 0;
    for (Id s : graph_->sources(at)) runs |= runs_[s];
    if ((*graph_)[at].op == Op::Range)
      for (size_t i = 1; i < loops_.size(); ++i)
        if (std::ranges::find(loops_[i].ranges, at) != loops_[i].ranges.end())
          runs |= uint64_t{1} << std::min<size_t>(i, 63);
    runs_.push_back(runs);
  }
  return runs_[id];
}

/// The innermost of the loops in and around `loops` that the index or the gate depends on: a row's
/// maximum that a sum over the row needs is the same for all of its terms.
uint32_t KernelLowering::loops_around(ListId index, Id gate, uint32_t loops) {
  if (loops == 0) return 0;
  uint64_t runs = gate == kNoId ? 0 : runs_along(gate);
  for (Id i : index_of(index)) runs |= runs_along(i);
  while (loops != 0 && (runs >> std::min<uint32_t>(loops, 63) & 1) == 0)
    loops = loops_[loops].outer;
  return loops;
}

/// Whether the index is constant: such an element is in bounds under any condition.
bool KernelLowering::is_one_element(ListId index) const {
  const auto values = graph_->list(index);
  return !values.empty() && std::ranges::all_of(values, [&](int64_t i) {
    return is_const(*graph_, static_cast<Id>(i));
  });
}

uint32_t KernelLowering::instance(Id node, ListId index, Id gate, uint32_t loops) {
  if (gate != kNoId && is_one_element(index)) gate = kNoId;
  loops = loops_around(index, gate, loops);
  for (uint32_t at = first_[node]; at != kNone; at = instances_[at].next) {
    ++state_.visits;
    const Instance& p = instances_[at];
    if (p.index == index && p.gate == gate && p.loops == loops) return at;
  }
  ++state_.visits;
  const bool is_first = first_[node] == kNone;
  if (is_first) touched_.push_back(node);
  const uint32_t number = is_first ? 1 : instances_[first_[node]].number + 1;
  instances_.push_back({.node = node,
                        .index = index,
                        .gate = gate,
                        .loops = loops,
                        .next = first_[node],
                        .number = number});
  return first_[node] = static_cast<uint32_t>(instances_.size() - 1);
}

uint32_t KernelLowering::source_instance(const Instance& at, Id source) {
  const bool scalar = state_.shapes[source].empty();
  return instance(source, scalar ? graph_->list({}) : at.inner_index, at.inner_gate,
                  at.inner_loops);
}

/// Whether the kernel reads the node from memory, or already has it.
bool KernelLowering::is_leaf(Id node) const {
  if (is_number(state_.graph, node)) return true;
  if (state_.stored[node] == 0 || state_.devices[node] != device_) return false;
  const Output* here = output(node);
  return here == nullptr || here->value != kNoId;
}

const KernelLowering::Output* KernelLowering::output(Id node) const {
  for (const Output& o : outputs_)
    if (o.node == node) return &o;
  return nullptr;
}

void KernelLowering::enter(Instance& at) {
  at.inner_index = at.index;
  at.inner_gate = at.gate;
  at.inner_loops = at.loops;
  if (is_leaf(at.node)) {
    at.value = load(at);
    return;
  }
  const Op op = state_.graph[at.node].op;
  if (is_movement(op)) enter_movement(at);
  if (op == Op::Reduce) enter_reduce(at);
}

void KernelLowering::enter_movement(Instance& at) {
  const Graph& tensors = state_.graph;
  const auto list = tensors.arg_list(at.node);
  const auto to = state_.shapes[at.node], from = state_.shapes[tensors[at.node].src[0]];
  std::vector<Id> index = index_of(at.index), inner = index;
  switch (tensors[at.node].op) {
    case Op::Reshape:
      inner = indexing_->reshape(index, to, from);
      break;
    case Op::Permute:
      for (size_t i = 0; i < list.size(); ++i) inner[static_cast<size_t>(list[i])] = index[i];
      break;
    case Op::Expand:
      for (size_t i = 0; i < inner.size(); ++i)
        if (from[i] == 1) inner[i] = graph_->index(0);
      break;
    case Op::Shrink:
      for (size_t i = 0; i < inner.size(); ++i) inner[i] = indexing_->add(index[i], list[2 * i]);
      break;
    case Op::Window: {
      Id& along = inner[static_cast<size_t>(list[0])];
      along = indexing_->add(along, number(tensors[at.node].src[1]));
      break;
    }
    case Op::Flip:
      for (size_t i = 0; i < inner.size(); ++i)
        if (list[i] != 0) inner[i] = indexing_->add(indexing_->mul(index[i], -1), from[i] - 1);
      break;
    default:
      for (size_t i = 0; i < inner.size(); ++i) {
        inner[i] = from[i] == 1 ? graph_->index(0) : indexing_->add(index[i], -list[2 * i]);
        const Id valid = indexing_->within(index[i], list[2 * i], list[2 * i] + from[i], to[i]);
        at.valid = indexing_->both(at.valid, valid);
      }
      return enter_padding(at, inner);
  }
  for (Id& i : inner) i = simplify_(i);
  at.inner_index = index_list(inner);
}

/// A constant condition is dropped: otherwise it would distinguish all instances below.
void KernelLowering::enter_padding(Instance& at, std::span<Id> inner) {
  const Id valid = at.valid == kNoId ? kNoId : simplify_(at.valid);
  const bool known = valid != kNoId && is_const(*graph_, valid);
  if (known && const_int(*graph_, valid) == 0) {
    at.value = graph_->constant(state_.graph[at.node].dtype, int64_t{0});
    return;
  }
  at.valid = known ? kNoId : valid;
  at.inner_gate = indexing_->both(at.gate, at.valid);
  for (Id& i : inner) i = simplify_(i);
  at.inner_index = index_list(inner);
}

void KernelLowering::enter_reduce(Instance& at) {
  const auto list = state_.graph.arg_list(at.node);
  const auto from = state_.shapes[state_.graph[at.node].src[0]];
  Dims sizes;
  for (int64_t axis : list.subspan(1)) sizes.push_back(from[static_cast<size_t>(axis)]);
  Dims order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  if (const auto own = state_.loop_order.find(at.node); own != state_.loop_order.end())
    order = own->second;
  at.inner_loops = loops_for(at.loops, sizes, order, phase_[at.node]);
  std::vector<Id> index = index_of(at.index);
  for (size_t i = 1; i < list.size(); ++i)
    index[static_cast<size_t>(list[i])] = loops_[at.inner_loops].ranges[i - 1];
  at.inner_index = index_list(index);
}

uint32_t KernelLowering::loops_for(uint32_t outer, const Dims& sizes, const Dims& order,
                                   uint32_t phase) {
  const ListId key = graph_->list(sizes);
  state_.visits += loops_.size();
  for (uint32_t i = 1; i < loops_.size(); ++i)
    if (loops_[i].outer == outer && loops_[i].sizes == key && loops_[i].phase == phase) return i;
  Loops loops{outer, key, phase, std::vector<Id>(sizes.size())};
  for (int64_t i : order)
    loops.ranges[static_cast<size_t>(i)] =
        make_range(*graph_, sizes[static_cast<size_t>(i)], next_axis_++, AxisKind::Reduce);
  loops_.push_back(std::move(loops));
  return static_cast<uint32_t>(loops_.size() - 1);
}

Id KernelLowering::finish(const Instance& at) {
  const Node& n = state_.graph[at.node];
  is_exact_ = is_exact_ || state_.bitwise_comparable[at.node] != 0;
  std::vector<Id> src;
  for (Id s : state_.graph.sources(at.node))
    src.push_back(instances_[source_instance(at, s)].value);
  if (n.op == Op::Pad) return padded(at, src[0]);
  if (n.op == Op::Reduce) return reduced(at, src[0]);
  if (n.op == Op::Iota) return graph_->cast(index_of(at.index)[0], n.dtype);
  if (is_alu(n.op)) return graph_->add(n.op, n.dtype, src, n.arg);
  return src[0];  // a view
}

Id KernelLowering::load(const Instance& at) {
  const Node& n = state_.graph[at.node];
  if (n.op == Op::Const) return graph_->add(Op::Const, n.dtype, {}, n.arg);
  if (n.op == Op::Scalar) return number(at.node);
  const std::vector<Id> index = index_of(at.index);
  const Id flat = element(at.node, index);
  if (const Output* here = output(at.node)) {
    ensure(here->index == flat, "[schedule] a kernel reads node {} that it stores at another index",
           at.node);
    return here->value;
  }
  const Id from = param(at.node);
  if (at.gate == kNoId) return graph_->add(Op::Load, n.dtype, {from, flat});
  return graph_->add(Op::Load, n.dtype,
                     {from, flat, at.gate, graph_->constant(n.dtype, int64_t{0})});
}

/// Numbers given at launch, and their negatives, are numbered anew in each kernel.
Id KernelLowering::number(Id scalar) {
  const Graph& g = state_.graph;
  const uint32_t given = 2 * scalar_number(g, scalar) + (is_negated(g, scalar) ? 1 : 0);
  const auto known = std::ranges::find(numbers_, given);
  const auto own = static_cast<uint32_t>(known - numbers_.begin());
  if (known == numbers_.end()) numbers_.push_back(given);
  if (g[scalar].dtype == DType::Index) return make_scalar(*graph_, own, g.arg_list(scalar)[1]);
  return make_scalar(*graph_, own, g[scalar].dtype);
}

/// Whether `value` is +0 where `gate` is false, because the loads in it are.
bool KernelLowering::zero_outside(Id value, Id gate) const {
  const Graph& g = *graph_;
  const Node* n = &g[value];
  while (n->op == Op::Cast) n = &g[n->src[0]];
  if (n->op == Op::Mul) return zero_outside(n->src[0], gate) && zero_outside(n->src[1], gate);
  return n->op == Op::Load && n->src_count == 4 && g.sources(*n)[2] == gate;
}

Id KernelLowering::padded(const Instance& at, Id value) {
  Graph& g = *graph_;
  if (at.valid == kNoId || zero_outside(value, at.inner_gate)) return value;
  if (g[value].op == Op::Reduce && static_cast<Op>(g.arg_list(value)[0]) == Op::Add) {
    // The sum is 0 where each term is: the loops of a sum around it can merge with its loops.
    const Node n = g[value];
    std::vector<Id> src(g.sources(n).begin(), g.sources(n).end());
    src[0] = padded(at, src[0]);
    return g.add(Op::Reduce, n.dtype, src, n.arg);
  }
  return g.where(at.valid, value, g.constant(g[value].dtype, int64_t{0}));
}

Id KernelLowering::reduced(const Instance& at, Id value) {
  Graph& g = *graph_;
  const Op op = static_cast<Op>(state_.graph.arg_list(at.node)[0]);
  const DType dtype = g[value].dtype;
  // Sums of small floats round too much; a maximum is exact. A bool has no sum.
  const bool rounds = is_float(dtype) && size_of(dtype) < 4 && op != Op::Max;
  const DType sum_dtype = dtype == DType::Bool ? DType::I32 : rounds ? DType::F32 : dtype;
  value = g.cast(value, sum_dtype);
  std::vector<Id> src = {value};
  const auto& ranges = loops_[at.inner_loops].ranges;
  src.insert(src.end(), ranges.begin(), ranges.end());
  const bool is_indexed = state_.indexed[at.node] != 0;
  const ListId list = is_indexed ? g.list({static_cast<int64_t>(op), kIndexed})
                                 : g.list({static_cast<int64_t>(op)});
  const Node inner = g[value];
  if (inner.op == Op::Reduce && inner.arg == list && !is_indexed) {
    const auto below = g.sources(inner);
    src[0] = below[0];
    src.insert(src.end(), below.begin() + 1, below.end());
  }
  const Id sum = g.add(Op::Reduce, sum_dtype, src, list);
  if (dtype == DType::Bool) return g.binary(Op::CmpNe, sum, g.constant(sum_dtype, int64_t{0}));
  return g.cast(sum, dtype);
}

Id KernelLowering::param(Id node) {
  const uint32_t slot = slot_of(node);
  const uint32_t access = slot < outputs_.size() ? PGR_PARAM_WRITE : PGR_PARAM_READ;
  return make_param(*graph_, state_.graph[node].dtype,
                    {slot, state_.counts[node], access | PGR_PARAM_NO_ALIAS});
}

ListId KernelLowering::index_list(std::span<const Id> index) {
  return graph_->list(Dims(index.begin(), index.end()));
}

std::vector<Id> KernelLowering::index_of(ListId list) const {
  const auto values = graph_->list(list);
  return {values.begin(), values.end()};
}

}  // namespace plugrad::schedule
