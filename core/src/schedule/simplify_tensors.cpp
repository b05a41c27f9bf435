// Copies the nodes that the roots need into the scheduler's graph, in simplest form: views merge,
// Detach and needless Contiguous and Copy vanish, uniform values become scalars, empty tensors
// become constants, large reductions are split.
#include "schedule/simplify_tensors.h"

#include <algorithm>

#include "base/check.h"

namespace plugrad::schedule {
namespace {

bool is_compute(Op op) {
  return is_alu(op) || op == Op::Reduce;
}

// A sum of more terms is computed by several kernels, as the gradient of a weight that every
// iteration of an unrolled loop reads.
//   before   reduce(t0 + t1 + … + t99)
//   after    store(reduce(t0 + … + t31)), store(it + reduce(t32 + … + t63)), …
// The kernels in the middle are equal, so that one compilation serves all of them. LLVM takes 0.2 s
// for the register tiles of so many matrix products.
constexpr size_t kTermsOfBlock = 32;

/// The readers of nodes of a tensor graph, and the terms of its sums.
class Readers {
 public:
  Readers(const Graph& graph, std::span<const Id> roots) : graph_(graph), uses_(graph.size(), 0) {
    for (Id root : roots) ++uses_[root];
    Reachable reachable;
    for (Id id : reachable.from(graph, roots))
      for (Id source : graph.sources(id)) ++uses_[source];
  }

  /// Whether nothing else reads the collective that `copy` is a copy of.
  bool is_only_reader_of_collective(Id copy) const {
    Id id = graph_.sources(copy)[0];
    while (uses_[id] == 1 && (graph_[id].op == Op::Reshape || graph_[id].op == Op::Detach))
      id = graph_.sources(id)[0];
    return uses_[id] == 1 && graph_[id].op == Op::Collective;
  }

  /// The terms of `sum`, for blocked summation. Additions with one use are looked through where
  /// `has_shape` holds for both of their sources.
  template <class HasShape>
  std::vector<Id> terms_of(Id sum, HasShape has_shape) const {
    std::vector<Id> found, stack = {sum};
    while (!stack.empty()) {
      const Id id = stack.back();
      stack.pop_back();
      const auto sources = graph_.sources(id);
      const bool is_inner = graph_[id].op == Op::Add && uses_[id] == 1;
      if (is_inner && has_shape(sources[0]) && has_shape(sources[1]))
        stack.insert(stack.end(), sources.begin(), sources.end());
      else
        found.push_back(id);
    }
    return found;
  }

 private:
  const Graph& graph_;
  std::vector<uint32_t> uses_;  // by id
};

class Copier {
 public:
  explicit Copier(SchedulerState& state)
      : state_(state),
        build_(state.graph, state.shapes,
               state.options.fast_math ? RuleSet::Fast : RuleSet::Strict),
        readers_(state.source, state.source_roots),
        new_id_(state.source.size(), kNoId) {}

  void run() {
    state_.inputs.assign(state_.source_inputs.size(), kNoId);
    for (Id id : depth_first()) new_id_[id] = copy(id);
    for (Id root : state_.source_roots) state_.roots.push_back(new_id_[root]);
    const size_t roots = state_.roots.size();
    for (Id id = 0; id < new_id_.size();
         ++id)  // ends of the graph, too, also where nothing is read
      if (new_id_[id] != kNoId && state_.source[id].op == Op::Collective)
        state_.roots.push_back(new_id_[id]);
    const std::vector<Id> joined = join_parts(state_, build_);
    for (Id& id : new_id_)
      if (id != kNoId) id = joined[id];
    for (size_t i = 0; i < state_.source_inputs.size(); ++i)
      state_.inputs[i] = new_id_[state_.source_inputs[i]];
    for (Id& root : state_.roots) root = request(joined[root]);
    state_.collectives.assign(state_.roots.begin() + static_cast<std::ptrdiff_t>(roots),
                              state_.roots.end());
    state_.roots.resize(roots);
    place_constant_roots();
    find_limits(state_, new_id_);
    if (state_.options.keep_graph) note_sources();
    state_.requested.resize(state_.graph.size(), 0);
    state_.visits += build_.visits();
  }

 private:
  /// A root that became a constant stays on its device; equal ones of two devices are copied.
  void place_constant_roots() {
    Devices given(state_.source), now(state_.graph);
    for (size_t i = 0; i < state_.roots.size(); ++i) {
      const uint32_t device = given[state_.source_roots[i]];
      Id& root = state_.roots[i];
      if (device == 0 || now[root] != 0) continue;
      if (state_.constant_roots.try_emplace(root, device).first->second != device)
        root = request(state_.graph.add(Op::Copy, state_.graph[root].dtype, {root}, device));
    }
  }

  void note_sources() {
    state_.source_of.assign(state_.graph.size(), kNoId);
    for (Id id = 0; id < new_id_.size(); ++id)
      if (new_id_[id] != kNoId) state_.source_of[new_id_[id]] = id;
  }

  /// Sources first, and of a commutative op the shallower source first: the terms of a sum over the
  /// iterations of a recurrence come in the order of the iterations, whatever their hashes. Equal
  /// iterations then give equal kernels.
  std::vector<Id> depth_first() const {
    const Graph& g = state_.source;
    const std::vector<uint32_t> depth = depths();
    std::vector<uint8_t> seen(g.size(), 0);
    std::vector<Id> order, stack;
    for (Id root : state_.source_roots) {
      stack.push_back(root);
      while (!stack.empty()) {
        const Id id = stack.back();
        if (seen[id] != 0) {
          stack.pop_back();
          if (seen[id] == 1) order.push_back(id);
          seen[id] = 2;
          continue;
        }
        seen[id] = 1;
        const auto sources = g.sources(id);
        const size_t first = stack.size();
        stack.insert(stack.end(), sources.rbegin(), sources.rend());
        if (sources.size() == 2 && is_commutative(g[id].op) &&
            depth[sources[1]] < depth[sources[0]])
          std::swap(stack[first], stack[first + 1]);
      }
    }
    return order;
  }

  std::vector<uint32_t> depths() const {
    std::vector<uint32_t> depth(state_.source.size(), 0);
    Reachable reachable;
    for (Id id : reachable.from(state_.source, state_.source_roots))
      for (Id s : state_.source.sources(id)) depth[id] = std::max(depth[id], depth[s] + 1);
    return depth;
  }

  /// Requests the value that `x` reshapes in row-major memory.
  Id request(Id x) {
    Graph& g = state_.graph;
    while (g[x].op == Op::Reshape) x = g[x].src[0];
    if (state_.requested.size() <= x) state_.requested.resize(g.size() * 2, 0);
    state_.requested[x] = 1;
    return x;
  }

  Dims list(Id id) const {
    const auto values = state_.source.arg_list(id);
    return {values.begin(), values.end()};
  }

  Id buffer(Id id) {
    return state_.graph.add(Op::Buffer, state_.source[id].dtype, {}, state_.graph.list(list(id)));
  }

  /// Computed values are stored in place; a view, or a value with an identity, needs a copy, unless
  /// it is a collective that nothing else reads.
  Id contiguous(Id x, uint64_t identity) {
    Graph& g = state_.graph;
    if (identity != 0) return g.add(Op::Contiguous, g[x].dtype, {x}, identity);
    Id base = x;
    while (g[base].op == Op::Reshape) base = g[base].src[0];
    const Op op = g[base].op;
    if (op == Op::Buffer || op == Op::Contiguous || op == Op::Copy || op == Op::UserKernel ||
        op == Op::Collective || is_number(g, base))
      return x;
    if (is_compute(op)) {
      request(base);
      return x;
    }
    return g.add(Op::Contiguous, g[x].dtype, {x});
  }

  /// A copy to the device of the value, or of a constant, is the value itself.
  Id device_copy(Id x, uint64_t device) {
    Graph& g = state_.graph;
    const uint32_t from = devices_[x];
    if (from == 0 || from == device) return x;
    Id base = x;
    while (g[base].op == Op::Reshape) base = g[base].src[0];
    request(base);
    const auto dims = state_.shapes[x];
    return build_.reshape(g.add(Op::Copy, g[base].dtype, {base}, device),
                          Dims(dims.begin(), dims.end()));
  }

  /// Sources of user kernels are row-major in memory.
  Id user_kernel(Id id, std::vector<Id> src) {
    Graph& g = state_.graph;
    for (Id& s : src) {
      s = contiguous(s, 0);
      while (g[s].op == Op::Reshape) s = g[s].src[0];
      if (g[s].op == Op::Const) s = g.add(Op::Contiguous, g[s].dtype, {s});
    }
    return g.add(Op::UserKernel, state_.source[id].dtype, src, g.list(list(id)));
  }

  /// Both sides are row-major in memory.
  Id collective(Id id, Id source) {
    Graph& g = state_.graph;
    source = contiguous(source, 0);
    while (g[source].op == Op::Reshape) source = g[source].src[0];
    if (g[source].op == Op::Const) source = g.add(Op::Contiguous, g[source].dtype, {source});
    return g.add(Op::Collective, g[source].dtype, {source}, g.list(list(id)));
  }

  Id copy(Id id) {
    const Node& n = state_.source[id];
    std::vector<Id> src;
    for (Id s : state_.source.sources(n)) src.push_back(new_id_[s]);
    switch (n.op) {
      case Op::Buffer:
        return buffer(id);
      case Op::Iota:
      case Op::Const:
        return state_.graph.add(n.op, n.dtype, {}, n.arg);
      case Op::Scalar:
        return state_.graph.add(n.op, n.dtype, {}, state_.graph.list(list(id)));
      case Op::Window:
        return state_.graph.add(n.op, n.dtype, src, state_.graph.list(list(id)));
      case Op::Detach:
      case Op::Bounded:
      case Op::Function:
        return src[0];
      case Op::Contiguous:
        return contiguous(src[0], readers_.is_only_reader_of_collective(id) ? 0 : n.arg);
      case Op::Copy:
        return device_copy(src[0], n.arg);
      case Op::Collective:
        return collective(id, src[0]);
      case Op::UserKernel:
        return user_kernel(id, std::move(src));
      case Op::Reduce:
        return reduce_terms(id, src[0]);
      default:
        break;
    }
    if (is_movement(n.op)) return move(n.op, src[0], list(id));
    ensure(is_alu(n.op), "[schedule] {} has no place in a tensor graph", op_info(n.op).name);
    return build_.elementwise(n, src);
  }

  Id reduce_terms(Id id, Id x) {
    const Dims op_and_axes = list(id);
    const ListId shape = state_.shapes.id(x);
    const auto has_shape = [&](Id s) { return state_.shapes.id(new_id_[s]) == shape; };
    std::vector<Id> terms;
    if (static_cast<Op>(op_and_axes[0]) == Op::Add)
      terms = readers_.terms_of(state_.source[id].src[0], has_shape);
    if (terms.size() <= 1) return reduce(x, op_and_axes);
    const Node addition = state_.source[state_.source[id].src[0]];
    const auto indexed_ones = std::ranges::stable_partition(
        terms, [&](Id term) { return !is_indexed_sum(new_id_[term], op_and_axes); });
    Id total = kNoId;
    for (Id term : indexed_ones) {
      const Id part = reduce(new_id_[term], op_and_axes);
      total = total == kNoId ? part : add(addition, total, part);
    }
    terms.erase(indexed_ones.begin(), indexed_ones.end());
    const size_t most = terms_together(terms, op_and_axes);
    if (total == kNoId && terms.size() <= most) return reduce(x, op_and_axes);
    for (size_t first = 0; first < terms.size(); first += most) {
      const size_t end = std::min(first + most, terms.size());
      Id part = new_id_[terms[first]];
      for (size_t i = first + 1; i < end; ++i) part = add(addition, part, new_id_[terms[i]]);
      part = reduce(part, op_and_axes);
      total = total == kNoId ? part : add(addition, total, part);
      if (end < terms.size()) request(total);
    }
    return total;
  }

  /// Whether the terms of this sum are stored by an index that is data. Such a sum is computed alone,
  /// also where the index of another one adds to the same elements: in one loop over both, each
  /// element would compare itself with every index.
  bool is_indexed_sum(Id term, const Dims& op_and_axes) {
    const Dims axes(op_and_axes.begin() + 1, op_and_axes.end());
    return indexed_axis(state_.graph, state_.shapes, Op::Add, term, axes).has_value();
  }

  /// Terms that one kernel adds. Matrix products that share an operand meet in its gradient; each
  /// gets a kernel of its own, with all registers for its tile and with packed operands.
  size_t terms_together(const std::vector<Id>& terms, const Dims& op_and_axes) {
    const Dims axes(op_and_axes.begin() + 1, op_and_axes.end());
    const bool products = std::ranges::all_of(
        terms, [&](Id term) { return is_long_product(build_, new_id_[term], axes); });
    return terms.size() > 1 && products ? 1 : kTermsOfBlock;
  }

  Id add(const Node& addition, Id a, Id b) {
    const Id both[] = {a, b};
    return build_.elementwise(addition, both);
  }

  Id reduce(Id x, const Dims& op_and_axes) {
    const Op op = static_cast<Op>(op_and_axes[0]);
    const Dims axes(op_and_axes.begin() + 1, op_and_axes.end());
    if (indexed_axis(state_.graph, state_.shapes, op, x, axes)) return indexed(op, x, axes);
    const SplitReduction split = split_reduction(build_, op, x, axes, state_.options);
    if (split.first != kNoId) request(split.first);
    return split.result;
  }

  /// Terms that are stored by an index are added in the dtype of the sum.
  Id indexed(Op op, Id x, const Dims& axes) {
    const DType dtype = state_.graph[x].dtype;
    if (!is_float(dtype) || size_of(dtype) >= 4) return build_.reduce(op, x, axes);
    return cast(build_.reduce(op, cast(x, DType::F32), axes), dtype);
  }

  Id cast(Id x, DType dtype) {
    Node like = state_.graph[x];
    like.op = Op::Cast;
    like.dtype = dtype;
    like.arg = 0;
    return build_.elementwise(like, std::span(&x, 1));
  }

  Id move(Op op, Id x, const Dims& values) {
    switch (op) {
      case Op::Reshape:
        return build_.reshape(x, values);
      case Op::Permute:
        return build_.permute(x, values);
      case Op::Expand:
        return build_.expand(x, values);
      case Op::Pad:
        return build_.pad(x, values);
      case Op::Shrink:
        return build_.shrink(x, values);
      default:
        return build_.flip(x, values);
    }
  }

  SchedulerState& state_;
  TensorBuilder build_;
  Readers readers_;
  Devices devices_{state_.graph};
  std::vector<Id> new_id_;
};

}  // namespace

void simplify_tensors(SchedulerState& state) {
  Copier(state).run();
}

}  // namespace plugrad::schedule
