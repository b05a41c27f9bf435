// Loop partitioning: splits an output loop at the points where conditions on it change, so that
// conditions are constant in its interior. A cut, no local rewrite.
// partition_outputs, before the schedule: padding becomes stores of its own; halves of a loop that
// share work run in one loop (join_halves).
//   before   store %out[%i*28 + %x], where (3 < %x & %x < 24) %in[%i*20 + %x - 4], 0
//            %x = range 28
//   after    store %out[%i*28 + %x], 0                          %x = range 4
//            store %out[%i*28 + %x + 4], %in[%i*20 + %x]        %x = range 20
//            store %out[%i*28 + %x + 24], 0                     %x = range 4
// partition_loops, after expansion:
//   before   store %out[%y*2], where (0 < %y) %in[%y*2 - 1], 0    %y = range 56
//   after    store %out[0], 0
//            store %out[%y*2 + 2], %in[%y*2 + 1]                  %y = range 55
#include <algorithm>
#include <iterator>

#include "codegen/analysis/access.h"
#include "codegen/analysis/tensor_core.h"
#include "codegen/passes/passes.h"
#include "codegen/transforms/transforms.h"
#include "cost/work.h"
#include "ir/facts.h"
#include "ir/fold.h"
#include "ir/scratch.h"
#include "symbolic/linear.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

// Nodes of a partitioned kernel, a limit on compile time. Chosen, not measured.
constexpr size_t kMostLoopNodes = 4096;
// Bounds of `rest` beyond this value of an index are ignored. Chosen, not measured.
constexpr int64_t kFar = int64_t{1} << 40;

struct Interior {
  int64_t begin = 0, end = 0;
};

// Narrows the interior to where `factor * range + rest < 0` has one known truth.
void narrow(Interior& interior, int64_t size, int64_t factor, Interval rest) {
  if (rest.lo < -kFar || rest.hi > kFar) return;
  const int64_t step = std::abs(factor);
  int64_t settled = factor > 0 ? -floor_div(rest.hi, step) : floor_div(rest.lo, step) + 1;
  int64_t again = factor > 0 ? -floor_div(rest.lo, step) : floor_div(rest.hi, step) + 1;
  if (settled >= size || again <= 0) return;
  settled = std::max<int64_t>(settled, 0);
  again = std::min(again, size);
  if (settled >= size - again)
    interior.end = std::min(interior.end, settled);
  else
    interior.begin = std::max(interior.begin, again);
}

class Partitioner {
 public:
  explicit Partitioner(Kernel& kernel) : kernel_(kernel), next_(new_axis(kernel)) {}

  void run() {
    std::vector<uint32_t> numbers;
    for (Id axis : kernel_.axes) numbers.push_back(range_axis(kernel_.graph[axis]));
    for (uint32_t number : numbers) {
      const size_t axis = axis_with_number(kernel_, number);
      if (axis < kernel_.axes.size() && may_cut(kernel_.axes[axis])) cut(kernel_.axes[axis]);
    }
    if (!pieces_.empty()) put_in_order();
  }

 private:
  struct Piece {
    uint32_t number, of;  // axis numbers: of the piece and of its loop
  };

  // Pieces of one iteration that share a nest would run their reduce loops side by side, with more
  // accumulators than the tile was chosen for.
  bool may_cut(Id range) const {
    const Graph& g = kernel_.graph;
    if (range_kind(g[range]) != AxisKind::Loop || is_bounded(g[range]) || is_element(g[range]))
      return false;
    OpenRanges open(g);
    Reachable reachable;
    return std::ranges::none_of(reachable.from(g, std::span(&kernel_.sink, 1)), [&](Id id) {
      const Node& n = g[id];
      if (n.op == Op::Reduce) return open.depends(id, range);
      if (n.op == Op::Filled) return closes(g, id, range) || open.depends(id, range);
      if (n.op == Op::Range) return is_bounded(n) && open.depends(id, range);
      return false;
    });
  }

  // The part of the loop in which no vector condition changes.
  Interior interior_of(Id range) const {
    const Graph& g = kernel_.graph;
    const int64_t size = range_size(g, range);
    Interior interior{0, size};
    OpenRanges open(g);
    Bounds bounds(g);
    Reachable reachable;
    const auto is_end = [&](Id id) { return g[id].op == Op::Range || g[id].op == Op::Bounded; };
    for (Id id : reachable.from(g, std::span(&kernel_.sink, 1), is_end)) {
      if (g[id].op != Op::CmpLt || g[g[id].src[0]].dtype != DType::Index) continue;
      if (!open.depends(id, range)) continue;
      auto sum = linear_of(g, g[id].src[0]);
      const auto right = linear_of(g, g[id].src[1]);
      if (!sum || !right) continue;
      for (const Term& t : right->terms) sum->add(t.id, -t.factor);
      sum->constant -= right->constant;
      const int64_t factor = sum->factor_of(range);
      sum->add(range, -factor);
      const bool once = std::ranges::none_of(
          sum->terms, [&](const Term& t) { return open.depends(t.id, range); });
      if (factor != 0 && once) narrow(interior, size, factor, interval_of(*sum, bounds));
    }
    return interior;
  }

  void cut(Id range) {
    Graph& g = kernel_.graph;
    const int64_t size = range_size(g, range);
    const Interior interior = interior_of(range);
    if (interior.end - interior.begin == size || 2 * (interior.end - interior.begin) < size) return;
    std::vector<std::pair<int64_t, int64_t>> parts;
    if (interior.begin > 0) parts.emplace_back(0, interior.begin);
    parts.emplace_back(interior.begin, interior.end);
    if (interior.end < size) parts.emplace_back(interior.end, size);
    Reachable reachable;
    if (parts.size() * reachable.from(g, std::span(&kernel_.sink, 1)).size() > kMostLoopNodes)
      return;
    std::vector<Id> indices;
    for (const auto& [begin, end] : parts) {
      Id piece = g.index(0);
      if (end - begin > 1) {
        pieces_.push_back({next_, range_axis(g[range])});
        piece = make_range(g, end - begin, next_++, AxisKind::Loop);
      }
      indices.push_back(g.binary(Op::Add, piece, g.index(begin)));
    }
    OpenRanges open(g);
    std::vector<Id> stores;
    for (Id store : to_vector(g.sources(kernel_.sink)))
      if (open.depends(store, range))
        for (Id index : indices) stores.push_back(at(g, store, range, index));
      else
        stores.push_back(store);
    kernel_.sink = g.add(Op::Sink, DType::Void, stores);
    replace(kernel_, {});
  }

  uint32_t origin_of(uint32_t number) const {
    const auto it = std::ranges::find(pieces_, number, &Piece::number);
    return it == pieces_.end() ? number : it->of;
  }

  // Pieces take the place of their loop in the nest.
  void put_in_order() {
    std::vector<Id> order = kernel_.axes;
    std::ranges::stable_sort(order, {}, [&](Id r) {
      const uint32_t number = range_axis(kernel_.graph[r]);
      return std::pair(origin_of(number), number);
    });
    renumber(kernel_, order);
  }

  Kernel& kernel_;
  uint32_t next_;
  std::vector<Piece> pieces_;
};

// Pieces of one loop, unless the pieces together have no more nodes than the whole. Chosen, not
// measured.
constexpr size_t kMostPieces = 8;
// A limit on the time of cutting. Chosen, not measured.
constexpr size_t kMostCuts = 256;
// Loops of all pieces: a schedule makes up to six of one, and a RangeSet has 128.
constexpr size_t kMostLoops = 20;

// The value of `range` at which `left < right` changes, if both sides are affine in the range
// alone.
std::optional<int64_t> turning_point(Graph& g, Simplifier& simplify, Id comparison, Id range) {
  const Id left = g[comparison].src[0], right = g[comparison].src[1];
  const auto dl = stride_of(g, left, range), dr = stride_of(g, right, range);
  if (!dl || !dr || *dl == *dr) return std::nullopt;
  const auto at_zero = [&](Id id) { return simplify(substitute(g, id, {{range, g.index(0)}})); };
  const Id l0 = at_zero(left), r0 = at_zero(right);
  if (!is_const(g, l0) || !is_const(g, r0)) return std::nullopt;
  // left - right = offset + slope * range: negative before that value for a positive slope, after
  // it for a negative one.
  const int64_t offset = const_int(g, l0) - const_int(g, r0), slope = *dl - *dr;
  return slope > 0 ? -floor_div(offset, slope) : floor_div(offset, -slope) + 1;
}

// Ascending starts of all pieces but the first; empty to leave the loop whole.
std::vector<int64_t> cuts(Kernel& kernel, Id range) {
  Graph& g = kernel.graph;
  Simplifier simplify(g, kernel.rules());
  OpenRanges open(g);
  std::vector<int64_t> points;
  for (Id id : nodes_of(g, kernel.sink, Op::CmpLt)) {
    if (open[id] != open.bit(range) || g[g[id].src[0]].dtype != DType::Index) continue;
    const auto point = turning_point(g, simplify, id, range);
    if (point && *point > 0 && *point < range_size(g, range)) points.push_back(*point);
  }
  std::ranges::sort(points);
  points.erase(std::unique(points.begin(), points.end()), points.end());
  if (points.size() >= kMostCuts) points.clear();
  return points;
}

// The loop along which a store writes consecutive elements; kNoId for none.
Id innermost_output(const Kernel& kernel, Id store) {
  const Graph& g = kernel.graph;
  for (Id axis : kernel.axes)
    if (range_kind(g[axis]) == AxisKind::Loop && !is_bounded(g[axis]) &&
        stride_of(g, g.sources(store)[1], axis) == 1)
      return axis;
  return kNoId;
}

// The store with `piece + begin` in place of the range. Arithmetic of unsigned integers wraps, so
// `begin` moves out of their casts, where it may cancel.
Id store_of_piece(Graph& g, Id store, Id range, Id piece, int64_t begin) {
  std::vector<std::pair<Id, Id>> at_piece = {{range, g.binary(Op::Add, piece, g.index(begin))}};
  for (const Id cast : nodes_of(g, store, Op::Cast)) {
    const Id index = g[cast].src[0];
    const DType dtype = g[cast].dtype;
    if (g[index].dtype != DType::Index || !is_unsigned(dtype)) continue;
    const auto stride = stride_of(g, index, range);
    if (!stride || *stride == 0) continue;
    const Id from_zero = g.cast(substitute(g, index, {{range, piece}}), dtype);
    at_piece.emplace_back(cast, g.binary(Op::Add, from_zero, g.constant(dtype, *stride * begin)));
  }
  return substitute(g, store, at_piece);
}

// Values that vary along the range, other than indices and loads. Both words of a hash are one value.
std::vector<Id> work_along(Graph& g, Id store, Id range) {
  OpenRanges open(g);
  Reachable reachable;
  std::vector<Id> found;
  for (const Id id : reachable.from(g, std::span(&store, 1)))
    if (open.depends(id, range) && g[id].dtype != DType::Index && g[id].dtype != DType::Void &&
        g[id].op != Op::Load && g[id].op != Op::Cast)
      found.push_back(g[id].op == Op::Threefry1 ? g.add(Op::Threefry0, g[id].dtype, g.sources(id))
                                                : id);
  std::ranges::sort(found);
  return found;
}

// Two pieces of a loop whose elements are computed from the same values, such as the low and the
// high words of random numbers, run in one loop:
//   before   store %out[%x], where (%x < 16) low(%x), high(%x - 16)         %x = range 32
//   after    store %out[%x], low(%x);  store %out[%x + 16], high(%x)        %x = range 16
// If one piece is longer, its last elements are a loop of their own. Returns whether it did.
bool join_halves(Kernel& kernel, Id range) {
  const std::vector<int64_t> points = cuts(kernel, range);
  if (points.size() != 1) return false;
  const int64_t first = points[0], second = range_size(kernel.graph, range) - first,
                both = std::min(first, second), rest = std::max(first, second) - both;
  if (both == 1 || rest > both) return false;
  if (rest > 0 && works_in_groups(*kernel.caps)) return false;
  Kernel trial = copy_of(kernel);
  Graph& g = trial.graph;
  const Id whole = trial.axes[axis_with_number(trial, range_axis(kernel.graph[range]))],
           store = g.sources(trial.sink)[0];
  const uint32_t number = range_axis(g[whole]);  // keeps its place among the loops
  const Id piece = make_range(g, both, number, AxisKind::Loop);
  std::vector<Id> stores = {store_of_piece(g, store, whole, piece, 0),
                            store_of_piece(g, store, whole, piece, first)};
  if (rest > 0) {
    const Id end = rest == 1 ? g.index(0) : make_range(g, rest, new_axis(trial), AxisKind::Loop);
    stores.push_back(store_of_piece(g, store, whole, end, first > second ? both : first + both));
  }
  trial.sink = g.add(Op::Sink, DType::Void, stores);
  replace(trial, {});
  const size_t at = axis_with_number(trial, number);
  if (at == trial.axes.size()) return false;
  const auto of_store = [&](size_t i) {
    return work_along(g, g.sources(trial.sink)[i], trial.axes[at]);
  };
  const auto weight = [&](const std::vector<Id>& nodes) {
    uint32_t sum = 0;
    for (const Id id : nodes) sum += cost::op_weight(g, g[id]);
    return sum;
  };
  const std::vector<Id> low = of_store(0), high = of_store(1);
  std::vector<Id> shared;
  std::ranges::set_intersection(low, high, std::back_inserter(shared));
  const bool are_half = 2 * shared.size() >= std::min(low.size(), high.size()),
             are_half_the_work = 2 * weight(shared) >= std::min(weight(low), weight(high));
  if (shared.empty() || !(are_half || are_half_the_work)) return false;
  kernel = std::move(trial);
  return true;
}

// Pieces take the place of their loop in the nest. Neighbours of one length share a loop, as many as
// leave kMostLoops.
void cut_at(Kernel& kernel, Id range, std::span<const int64_t> ends) {
  Graph& g = kernel.graph;
  const Id store = g.sources(kernel.sink)[0];
  const uint32_t whole = range_axis(g[range]), first = new_axis(kernel);
  const size_t together = (ends.size() + kMostLoops - 1) / kMostLoops;
  uint32_t number = first;
  std::vector<Id> stores;
  Id piece = kNoId;
  int64_t begin = 0, length = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const int64_t size = ends[i] - begin;
    if (size == 1)
      piece = g.index(0);
    else if (size != length || i % together == 0)
      piece = make_range(g, size, number++, AxisKind::Loop);
    length = size;
    stores.push_back(substitute(g, store, {{range, g.binary(Op::Add, piece, g.index(begin))}}));
    begin = ends[i];
  }
  kernel.sink = g.add(Op::Sink, DType::Void, stores);
  replace(kernel, {});
  std::vector<Id> order = to_vector(kernel.axes);
  std::ranges::stable_sort(order, {}, [&](Id axis) {
    const uint32_t own = range_axis(g[axis]);
    return own < first ? own : whole;
  });
  renumber(kernel, order);
}

size_t nodes_in(const Kernel& kernel) {
  Reachable reachable;
  return reachable.from(kernel.graph, std::span(&kernel.sink, 1)).size();
}

// Few pieces share a loop, as all at once would read too many streams:
//   before   store %out[%x], %a[%x];  store %out[%x + 64], %b[%x]     %x = range 64
//   after    store %out[%x], %a[%x];  store %out[%y + 64], %b[%y]     %x, %y = range 64
void separate_loops(Kernel& kernel) {
  Graph& g = kernel.graph;
  uint32_t number = new_axis(kernel);
  std::vector<Id> stores = to_vector(g.sources(kernel.sink));
  const size_t most = kMostLoops / kernel.axes.size();
  const size_t together = (stores.size() + most - 1) / most;
  std::vector<std::pair<Id, Id>> own;
  for (size_t i = 0; i < stores.size(); ++i) {
    if (i % together == 0) {
      own.clear();
      for (const Id axis : kernel.axes)
        own.emplace_back(axis, make_range(g, range_size(g, axis), number++, AxisKind::Loop));
    }
    stores[i] = substitute(g, stores[i], own);
  }
  kernel.sink = g.add(Op::Sink, DType::Void, stores);
  replace(kernel, {});
}

bool has_plain_loops_only(const Kernel& kernel) {
  return std::ranges::all_of(kernel.axes, [&](Id axis) {
    const Node& range = kernel.graph[axis];
    return range_kind(range) == AxisKind::Loop && !is_bounded(range);
  });
}

bool cut_into_pieces(Kernel& kernel, Id range) {
  std::vector<int64_t> ends = cuts(kernel, range);
  if (ends.empty()) return false;
  ends.push_back(range_size(kernel.graph, range));
  if (ends.size() <= kMostPieces) {
    cut_at(kernel, range, ends);
    return true;
  }
  if (!has_plain_loops_only(kernel)) return false;
  Kernel trial = copy_of(kernel);
  cut_at(trial, trial.axes[axis_with_number(trial, range_axis(kernel.graph[range]))], ends);
  if (nodes_in(trial) > nodes_in(kernel) || trial.axes.size() > kMostLoops) return false;
  if (!trial.axes.empty() && trial.axes.size() < kernel.axes.size()) separate_loops(trial);
  kernel = std::move(trial);
  return true;
}

// Whether a cut saves a fifth of the operations: each piece then computes values that others do not.
bool saves_work(const Kernel& cut, const Kernel& whole) {
  return 5 * (executed_work(cut).operations / 4) <= executed_work(whole).operations;
}

}  // namespace

void partition_loops(Kernel& kernel) {
  if (kernel.options.no_opt || works_in_groups(*kernel.caps)) return;
  Partitioner(kernel).run();
}

void partition_outputs(Kernel& kernel) {
  Graph& g = kernel.graph;
  if (kernel.options.no_opt || g.sources(kernel.sink).size() != 1) return;
  const Id store = g.sources(kernel.sink)[0], range = innermost_output(kernel, store);
  for (const Id axis : to_vector(kernel.axes))
    if (range_kind(g[axis]) == AxisKind::Loop && !is_bounded(g[axis]) &&
        stride_of(g, g.sources(store)[1], axis).value_or(0) != 0 && join_halves(kernel, axis))
      return;
  // Work-items in lockstep would run the pieces one after another.
  if (works_in_groups(*kernel.caps) || (range != kNoId && cut_into_pieces(kernel, range))) return;
  for (const Id axis : to_vector(kernel.axes)) {
    if (axis == range || range_kind(g[axis]) != AxisKind::Loop || is_bounded(g[axis]) ||
        stride_of(g, g.sources(store)[1], axis).value_or(0) == 0 || cuts(kernel, axis).empty())
      continue;
    Kernel trial = copy_of(kernel);
    const size_t same = axis_with_number(trial, range_axis(g[axis]));
    if (!cut_into_pieces(trial, trial.axes[same]) || !saves_work(trial, kernel)) continue;
    kernel = std::move(trial);
    return;
  }
}

}  // namespace plugrad::codegen
