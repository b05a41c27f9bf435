// Marks reductions whose terms are stored by an index that is data.
//
//   out[r] = sum over i of where(at[i] == r, v[i], 0)        at and v do not depend on r
//
// As written, this visits rows * count terms. Codegen (passes/index_stores.cpp) turns a marked
// Reduce into a loop over i that adds v[i] to out[at[i]].
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "cost/work.h"
#include "schedule/simplify_tensors.h"
#include "symbolic/bounds.h"

namespace plugrad::schedule {
namespace {

constexpr int64_t kFewRows = 16;        // rows: comparing vectors with each of these is as fast
constexpr int64_t kFewPairs = 65536;    // of rows and terms: a masked loop is as fast
constexpr size_t kMostNodesBelow = 64;  // visits below one Reduce

using AxisBits = uint64_t;  // one bit for each axis of a value
constexpr AxisBits bit(size_t axis) {
  return AxisBits{1} << axis;
}

/// Adjacent axes of a reshape's source and result that hold the same elements.
struct Run {
  AxisBits from = 0, to = 0;
};
std::vector<Run> runs_of(std::span<const int64_t> from, std::span<const int64_t> to) {
  std::vector<Run> runs;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    Run run;
    int64_t left = 1, right = 1;
    do {
      if (i < from.size() && (left <= right || j == to.size())) {
        run.from |= bit(i);
        left *= from[i++];
      } else {
        run.to |= bit(j);
        right *= to[j++];
      }
    } while (left != right);
    while (i < from.size() && from[i] == 1) ++i;
    while (j < to.size() && to[j] == 1) ++j;
    runs.push_back(run);
  }
  return runs;
}

class Recogniser {
 public:
  Recogniser(const Graph& graph, Shapes& shapes) : g_(graph), shapes_(shapes) {}

  std::optional<size_t> axis(Op op, Id x, std::span<const int64_t> axes) {
    const Id reduced_value = x;
    std::vector<Id> conditions;
    while (true) {
      const Node& n = g_[x];
      if (n.op == Op::Cast) {  // dtypes differ in their lowest value
        if (op == Op::Max && !(is_float(n.dtype) && is_float(g_[n.src[0]].dtype)))
          return std::nullopt;
        x = n.src[0];
      } else if (n.op == Op::Where && is_identity(op, n.src[2])) {
        conditions.push_back(n.src[0]);
        x = n.src[1];
      } else {
        break;
      }
    }
    const auto shape = shapes_[reduced_value];
    if (shape.size() >= 64 || g_[reduced_value].dtype == DType::Bool) return std::nullopt;
    if (g_[x].dtype == DType::Bool && op == Op::Add) {  // 1 where the condition holds
      conditions.push_back(x);
      x = kNoId;
    }
    AxisBits reduced = 0;
    for (int64_t a : axes) reduced |= bit(static_cast<size_t>(a));
    for (size_t r = 0; r < shape.size(); ++r) {
      if ((reduced & bit(r)) != 0 || shape[r] <= kFewRows) continue;
      int64_t terms = 1;
      for (int64_t a : axes) terms *= shape[static_cast<size_t>(a)];
      if (terms > kFewPairs / shape[r] && one_selects(conditions, r, reduced) &&
          (x == kNoId || (varies(x) & bit(r)) == 0) && looked_at_ < kMostNodesBelow)
        return r;
    }
    return std::nullopt;
  }

  /// The axes along which the condition of the reduced value `x` holds at one index, as in x[i].
  AxisBits picked(Op op, Id x, std::span<const int64_t> axes) {
    while (g_[x].op == Op::Cast) x = g_[x].src[0];
    AxisBits found = 0;
    if (g_[x].op != Op::Where || shapes_[x].size() >= 64 || !is_identity(op, g_[x].src[2], true))
      return found;
    for (int64_t a : axes)
      if (selects(g_[x].src[0], static_cast<size_t>(a), 0)) found |= bit(static_cast<size_t>(a));
    return looked_at_ < kMostNodesBelow ? found : 0;
  }

 private:
  bool is_identity(Op op, Id id, bool of_any_sign = false) const {
    while (is_movement(g_[id].op) && g_[id].op != Op::Pad) id = g_[id].src[0];
    const Node& n = g_[id];
    if (n.op != Op::Const) return false;
    if (op == Op::Add) return n.arg == 0 || (of_any_sign && const_float(g_, id) == 0);
    if (op == Op::Mul) return const_float(g_, id) == 1;
    if (is_float(n.dtype)) return const_float(g_, id) == -INFINITY;
    return const_int(g_, id) == (is_unsigned(n.dtype) ? 0 : dtype_interval(n.dtype).lo);
  }

  /// Whether one condition does, and the others do not vary along r.
  bool one_selects(std::span<const Id> conditions, size_t r, AxisBits reduced) {
    size_t selecting = 0;
    for (const Id condition : conditions)
      if (selects(condition, r, reduced))
        ++selecting;
      else if ((varies(condition) & bit(r)) != 0)
        return false;
    return selecting == 1;
  }

  /// Whether the condition compares the index along axis r with a value that varies along the
  /// reduced axes, and not along r; if none are given, with any that does not vary along r.
  bool selects(Id condition, size_t r, AxisBits reduced) {
    if (++looked_at_ >= kMostNodesBelow) return false;
    const Node n = g_[condition];
    switch (n.op) {
      case Op::Expand:
        return shapes_[n.src[0]][r] == shapes_[condition][r] && selects(n.src[0], r, reduced);
      case Op::Reshape: {
        const auto to = shapes_[condition];
        for (const Run& run : runs_of(shapes_[n.src[0]], to))
          if ((run.to & bit(r)) != 0 && std::has_single_bit(run.from) && is_alone(run, r, to))
            return selects(n.src[0], static_cast<size_t>(std::countr_zero(run.from)),
                           below(n.src[0], condition, reduced));
        return false;
      }
      case Op::And:
        return (selects(n.src[0], r, reduced) && (varies(n.src[1]) & bit(r)) == 0) ||
               (selects(n.src[1], r, reduced) && (varies(n.src[0]) & bit(r)) == 0);
      case Op::CmpEq:
        return (is_counter(n.src[0], r) && is_index(n.src[1], r, reduced)) ||
               (is_counter(n.src[1], r) && is_index(n.src[0], r, reduced));
      default:
        return false;
    }
  }
  static bool is_alone(const Run& run, size_t r, std::span<const int64_t> to) {
    for (size_t i = 0; i < to.size(); ++i)
      if (i != r && (run.to & bit(i)) != 0 && to[i] != 1) return false;
    return true;
  }
  AxisBits below(Id source, Id reshape, AxisBits axes) {
    AxisBits found = 0;
    for (const Run& run : runs_of(shapes_[source], shapes_[reshape]))
      if ((run.to & axes) != 0) found |= run.from;
    return found;
  }

  bool is_index(Id id, size_t r, AxisBits reduced) {
    const AxisBits along = varies(id);
    return (along & bit(r)) == 0 && (reduced == 0 || ((along & reduced) != 0 && !is_linear(id)));
  }

  /// Whether the value is linear in its indices: then the sum needs no loop.
  bool is_linear(Id id) {
    if (++looked_at_ >= kMostNodesBelow) return false;
    const Op op = g_[id].op;
    if (op == Op::Iota || is_number(g_, id)) return true;
    const bool keeps = is_movement(op) || op == Op::Cast || op == Op::Add || op == Op::Sub ||
                       op == Op::Neg || op == Op::Mul;
    return keeps && std::ranges::all_of(g_.sources(id), [&](Id s) { return is_linear(s); });
  }

  /// Whether the value is its index along the axis.
  bool is_counter(Id id, size_t r) {
    const int64_t size = shapes_[id].size() > r ? shapes_[id][r] : 0;
    if (varies(id) != bit(r)) return false;
    while (g_[id].op == Op::Expand || g_[id].op == Op::Reshape || g_[id].op == Op::Permute ||
           (g_[id].op == Op::Cast && is_integer(g_[id].dtype)))
      id = g_[id].src[0];
    return g_[id].op == Op::Iota && static_cast<int64_t>(g_[id].arg) == size;
  }

  /// Axes along which elements may differ.
  AxisBits varies(Id id) {
    const auto shape = shapes_[id];
    AxisBits all = 0;
    for (size_t i = 0; i < shape.size() && i < 64; ++i)
      if (shape[i] != 1) all |= bit(i);
    if (++looked_at_ >= kMostNodesBelow || all == 0 || element_count(shape) == 0) return all;
    const Node n = g_[id];
    if (is_alu(n.op)) {
      AxisBits some = 0;
      for (Id s : g_.sources(n)) some |= varies(s);
      return some;
    }
    if (!is_movement(n.op)) return all;
    const auto from = shapes_[n.src[0]];
    const AxisBits source = varies(n.src[0]);
    AxisBits some = 0;
    switch (n.op) {
      case Op::Expand:
        for (size_t i = 0; i < shape.size(); ++i)
          if (shape[i] == from[i]) some |= source & bit(i);
        return some;
      case Op::Permute:
        for (size_t i = 0; i < shape.size(); ++i)
          if ((source >> g_.arg_list(id)[i] & 1) != 0) some |= bit(i);
        return some;
      case Op::Reshape:
        for (const Run& run : runs_of(from, shape))
          if ((run.from & source) != 0) some |= run.to;
        return some & all;
      case Op::Pad:
        for (size_t i = 0; i < shape.size(); ++i)
          if (shape[i] != from[i]) some |= bit(i);
        return source | some;
      default:
        return source;
    }
  }

  const Graph& g_;
  Shapes& shapes_;
  size_t looked_at_ = 0;
};

/// Values that only Reduces with `axes` read, by these axes, are computed once for all of their
/// indices: sets the axes of such values and divides their elements.
void compute_once(SchedulerState& state, std::vector<AxisBits>& axes,
                  std::vector<int64_t>& computed) {
  const Graph& g = state.graph;
  // Consumers have larger ids. Only elementwise ops and Expands keep the axes.
  for (size_t i = state.live.size(); i-- > 0;) {
    const Id id = state.live[i];
    const Op op = g[id].op;
    const auto readers = state.consumers.of(id);
    if (readers.empty() || state.requested[id] != 0 || (!is_alu(op) && op != Op::Expand)) continue;
    AxisBits common = ~AxisBits{0};
    for (Id by : readers) common &= axes[by];
    const auto shape = state.shapes[id];
    for (size_t r = 0; r < std::min<size_t>(shape.size(), 64); ++r)
      if ((common & bit(r)) != 0 && shape[r] > 1) {
        axes[id] |= bit(r);
        computed[id] /= shape[r];
      }
  }
}

/// Finds the operations of each node, computed once. Reduces with `axes` count one term for all
/// indices of these, and nothing for the conditions.
void count_operations(SchedulerState& state, std::vector<AxisBits> axes) {
  const Graph& g = state.graph;
  state.once = state.counts;
  compute_once(state, axes, state.once);
  const auto is_marked = [&](Id by) { return axes[by] != 0; };
  for (size_t i = state.live.size(); i-- > 0;) {  // conditions, also below other views
    const Id id = state.live[i];
    const auto readers = state.consumers.of(id);
    if (g[id].dtype == DType::Bool && !readers.empty() && std::ranges::all_of(readers, is_marked))
      axes[id] |= axes[readers[0]];
  }
  cost::CountedWeights weights(g);
  state.work.assign(g.size(), 0);
  double sum = 0;
  for (Id id : state.live) {
    const Node& n = g[id];
    if (n.op == Op::Reduce) {
      const auto shape = state.shapes[n.src[0]];
      auto terms = static_cast<double>(state.counts[n.src[0]]);
      for (size_t r = 0; r < shape.size(); ++r)
        if (r < 64 && (axes[id] & bit(r)) != 0) terms /= static_cast<double>(shape[r]);
      state.work[id] = terms;
    } else if (axes[id] == 0 || (n.op != Op::Where && n.dtype != DType::Bool)) {
      state.work[id] = static_cast<double>(weights[id]) * static_cast<double>(state.once[id]);
    }
    sum += state.work[id];
  }
  state.plan.operations = static_cast<int64_t>(std::min(sum, 0x1p62));
}

}  // namespace

std::optional<size_t> indexed_axis(const Graph& graph, Shapes& shapes, Op op, Id x,
                                   std::span<const int64_t> axes) {
  return Recogniser(graph, shapes).axis(op, x, axes);
}

void find_indexed(SchedulerState& state) {
  const Graph& g = state.graph;
  state.indexed.assign(g.size(), 0);
  state.computed = state.counts;
  state.picked.assign(g.size(), 0);
  std::vector<AxisBits> rows(g.size(), 0);
  bool any = false;
  for (Id id : state.live) {
    if (g[id].op != Op::Reduce) continue;
    const auto list = g.arg_list(id);
    const Op op = static_cast<Op>(list[0]);
    const Id x = g[id].src[0];
    if (const auto axis = indexed_axis(g, state.shapes, op, x, list.subspan(1))) {
      state.indexed[id] = static_cast<uint8_t>(*axis + 1);
      rows[id] = bit(*axis);
      any = true;
    } else {
      state.picked[id] = Recogniser(g, state.shapes).picked(op, x, list.subspan(1));
    }
  }
  std::vector<AxisBits> once = state.picked;
  std::ranges::transform(rows, once, once.begin(), std::bit_or{});
  count_operations(state, std::move(once));
  if (any) compute_once(state, rows, state.computed);
}

}  // namespace plugrad::schedule
