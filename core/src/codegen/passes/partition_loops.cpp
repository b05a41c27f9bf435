// A cut, no local rewrite: stores become several over parts of a loop. An output loop is cut where
// the conditions on it are settled: between its borders they are constant.
//   before   store %out[%y*2], where (0 < %y) %in[%y*2 - 1], 0    %y = range 56
//   after    store %out[0], 0
//            store %out[%y*2 + 2], %in[%y*2 + 1]                  %y = range 55
#include <algorithm>

#include "codegen/analysis/access.h"
#include "codegen/passes/passes.h"
#include "codegen/search/heuristic.h"
#include "codegen/transforms/changes.h"
#include "codegen/transforms/wmma_tiles.h"
#include "ir/facts.h"
#include "ir/scratch.h"
#include "symbolic/linear.h"

namespace plugrad::codegen {
namespace {

// Of a kernel with its borders: a compiler takes some 0.1 ms a node.
constexpr size_t kMostNodes = 4096;
// Beyond such a rest nothing is known of a condition.
constexpr int64_t kFar = int64_t{1} << 40;

int64_t floor_div(int64_t a, int64_t b) {
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}

struct Interior {
  int64_t begin = 0, end = 0;
};

// Cuts off the end of the loop at which the truth of `factor * range + rest < 0` is another than
// inside, or is not settled.
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
      const Graph& g = kernel_.graph;
      const auto it =
          std::ranges::find(kernel_.axes, number, [&](Id r) { return range_axis(g[r]); });
      if (it != kernel_.axes.end() && may_cut(*it)) cut(*it);
    }
    if (!pieces_.empty()) put_in_order();
  }

 private:
  struct Piece {
    uint32_t number, of;  // axis numbers: its own, that of the loop
  };

  // Loops over sums would run side by side where pieces of one iteration share a nest, with more
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

  // The part of the loop in which no condition on vectors changes.
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
    if (parts.size() * reachable.from(g, std::span(&kernel_.sink, 1)).size() > kMostNodes) return;
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
    for (Id store : std::vector<Id>(g.sources(kernel_.sink).begin(), g.sources(kernel_.sink).end()))
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

}  // namespace

void partition_loops(Kernel& kernel) {
  if (kernel.options.no_opt || works_in_groups(*kernel.caps)) return;
  Partitioner(kernel).run();
}

}  // namespace plugrad::codegen
