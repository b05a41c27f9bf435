// Turns upcast and unroll ranges into copies and vector ranges into lanes. Nodes that do not depend
// on the range are shared, because nodes are interned.
//   before   store %c[%i*4 + %u], (reduce add %x[%k*2 + %v], %k, %v)
//            %u = range 2 upcast, %v = range 2 unroll
//   after    store %c[%i*4 + 0], (reduce add %x[%k*2], %x[%k*2 + 1], %k)
//            store %c[%i*4 + 1], (reduce add %x[%k*2], %x[%k*2 + 1], %k)
// A vector range becomes pieces of the device's width and smaller powers of two: 20 = 16 + 4. Where
// elements may be stored twice the last piece overlaps: 28 = 16 + 16. Afterwards Range nodes are
// Loop, Reduce, Global, Local or Group; a Reduce may have several values, combined in order into
// one accumulator.
#include <algorithm>
#include <bit>
#include <functional>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/analysis/tensor_core.h"
#include "codegen/passes/passes.h"
#include "ir/facts.h"
#include "ir/scratch.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

using Map = std::vector<std::pair<Id, Id>>;

struct Piece {
  int64_t first;
  uint32_t lanes;
};

// With `may_repeat` the last piece overlaps the one before instead of being split further.
std::vector<Piece> pieces_of(int64_t size, uint32_t widest, bool may_repeat = false) {
  std::vector<Piece> out;
  for (int64_t at = 0; at < size;) {
    const auto left = static_cast<uint64_t>(size - at), more = std::bit_ceil(left);
    if (may_repeat && at > 0 && left < more && more <= widest) {
      out.push_back({size - static_cast<int64_t>(more), static_cast<uint32_t>(more)});
      break;
    }
    const auto lanes = static_cast<uint32_t>(std::min<uint64_t>(widest, std::bit_floor(left)));
    out.push_back({at, lanes});
    at += lanes;
  }
  return out;
}

Id piece_index(Graph& g, const Piece& piece) {
  if (piece.lanes == 1) return g.index(piece.first);
  const Id iota = g.add(Op::Iota, DType::Index, {}, piece.lanes);
  return piece.first == 0 ? iota : g.binary(Op::Add, iota, g.index(piece.first));
}

// The widest vector that all loaded and stored dtypes of the kernel allow.
uint32_t widest_vector(const Kernel& kernel) {
  uint32_t lanes = 64;
  Reachable reachable;
  for (Id id : reachable.from(kernel.graph, std::span(&kernel.sink, 1))) {
    const DType dtype = kernel.graph[id].dtype;
    if (kernel.graph[id].op == Op::Load || kernel.graph[id].op == Op::Reduce)
      lanes = std::min(lanes, std::max(1u, kernel.caps->vector_lanes[static_cast<size_t>(dtype)]));
  }
  return lanes == 64 ? std::max(1u, kernel.caps->vector_lanes[PGR_DTYPE_F32]) : lanes;
}

// All combinations of the ranges' values, the last range fastest; of vector ranges the pieces.
std::vector<Map> combinations(Graph& g, const std::vector<Id>& ranges, uint32_t widest,
                              const std::vector<Id>& repeated = {}) {
  std::vector<Map> out = {{}};
  for (Id range : ranges) {
    std::vector<Id> values;
    if (range_kind(g[range]) == AxisKind::Vector)
      for (const Piece& piece : pieces_of(range_size(g, range), widest,
                                          std::ranges::find(repeated, range) != repeated.end()))
        values.push_back(piece_index(g, piece));
    else
      for (int64_t i = 0; i < range_size(g, range); ++i) values.push_back(g.index(i));
    std::vector<Map> next;
    for (const Map& map : out)
      for (Id value : values) {
        next.push_back(map);
        next.back().emplace_back(range, value);
      }
    out = std::move(next);
  }
  return out;
}

// Combines the lanes of a vector by halves, the order of hardware shuffles.
Id combine_lanes(Graph& g, Op op, Id vector, uint32_t lanes) {
  for (; lanes > 1; lanes /= 2) {
    const DType dtype = g[vector].dtype;
    const Id low = g.add(Op::Lane, dtype, {vector}, lane_arg(0, lanes / 2));
    const Id high = g.add(Op::Lane, dtype, {vector}, lane_arg(lanes / 2, lanes / 2));
    vector = g.binary(op, low, high);
  }
  return vector;
}

struct Expander {
  Kernel& kernel;
  Graph& g = kernel.graph;
  uint32_t widest = widest_vector(kernel);
  std::vector<Id> repeated = repeated_ranges();  // ranges whose elements may be stored twice

  std::vector<Id> repeated_ranges() const {
    std::vector<Id> ranges;
    if (works_in_groups(*kernel.caps) || kernel.options.no_opt) return ranges;
    OpenRanges open(g);
    for (Id axis : kernel.axes)
      if (range_kind(g[axis]) == AxisKind::Vector &&
          may_repeat(g, open, g.sources(kernel.sink), axis))
        ranges.push_back(axis);
    return ranges;
  }

  Id simplified(Id id) { return simplify(id); }
  Simplifier simplify{g, kernel.rules()};

  // One accumulator for each vector width; unrolled values share it.
  Id reduce(Id id) {
    const ReduceParts parts = reduce_parts(g, id);
    const Op op = parts.op;
    std::vector<Id> values(parts.values.begin(), parts.values.end()), loops, expanded;
    Id vector = kNoId;
    for (Id r : parts.ranges) {
      const AxisKind kind = range_kind(g[r]);
      if (kind == AxisKind::Vector)
        vector = r;
      else
        (is_expanded(kind) ? expanded : loops).push_back(r);
    }
    if (vector == kNoId) {
      if (expanded.empty()) return id;
      const std::vector<Id> all = all_values(values, combinations(g, expanded, widest));
      if (loops.empty() && g[all[0]].op == Op::Wmma) return chain_products(g, all);
      return make_reduce(g, op, all, loops);
    }
    std::vector<Id> sums;  // one for each piece
    std::vector<uint32_t> lanes;
    for (const Piece& piece : pieces_of(range_size(g, vector), widest)) {
      const Map at_piece = {{vector, piece_index(g, piece)}};
      std::vector<Id> in_piece;
      for (Id v : values) in_piece.push_back(simplified(substitute(g, v, at_piece)));
      std::vector<Id> terms = all_values(in_piece, combinations(g, expanded, widest));
      repeat_to_lanes(terms, piece.lanes);
      sums.push_back(make_reduce(g, op, terms, loops));
      lanes.push_back(piece.lanes);
    }
    return combine_pieces(op, sums, lanes);
  }

  // Broadcasts values that do not vary over the lanes of this piece.
  void repeat_to_lanes(std::vector<Id>& values, uint32_t lanes) {
    if (lanes == 1) return;
    OpenRanges open(g);
    for (Id& value : values) {
      const auto members = open.members(open[value]);
      const bool varies = std::ranges::any_of(members, [&](Id m) { return g[m].op == Op::Iota; });
      if (!varies) value = g.add(Op::Vector, g[value].dtype, {value}, lanes);
    }
  }

  std::vector<Id> all_values(const std::vector<Id>& values, const std::vector<Map>& maps) {
    std::vector<Id> out;
    for (const Map& map : maps)
      for (Id v : values) out.push_back(map.empty() ? v : simplified(substitute(g, v, map)));
    return out;
  }

  Id combine_pieces(Op op, std::vector<Id> sums, std::vector<uint32_t> lanes) {
    Id total = kNoId;
    for (size_t i = 0; i < sums.size();) {
      Id sum = sums[i];
      size_t j = i + 1;
      for (; j < sums.size() && lanes[j] == lanes[i]; ++j) sum = g.binary(op, sum, sums[j]);
      const Id scalar = combine_lanes(g, op, sum, lanes[i]);
      total = total == kNoId ? scalar : g.binary(op, total, scalar);
      i = j;
    }
    return total;
  }

  // An array's stores are expanded along its own ranges only; expanding a surrounding range makes
  // another array.
  Id filled(Id id) {
    const FilledParts parts = filled_parts(g, id);
    std::vector<Id> loops, own;
    for (Id r : parts.ranges) (is_expanded(range_kind(g[r])) ? own : loops).push_back(r);
    return make_filled(
        g,
        expanded_stores(parts.stores, [&](Id r) { return std::ranges::find(own, r) != own.end(); }),
        loops);
  }

  std::vector<Id> expanded_stores(std::span<const Id> stores,
                                  const std::function<bool(Id)>& expands) {
    OpenRanges open(g);
    std::vector<Id> out;
    const std::vector<Id> before = to_vector(stores);
    for (Id store : before) {
      std::vector<Id> expanded;
      for (Id r : open.members(open[store]))
        if (expands(r)) expanded.push_back(r);
      // Vector ranges run fastest, so that a value broadcast to all their lanes is needed in one
      // place.
      std::ranges::stable_partition(expanded,
                                    [&](Id r) { return range_kind(g[r]) != AxisKind::Vector; });
      for (const Map& map : combinations(g, expanded, widest, repeated))
        out.push_back(map.empty() ? store : simplified(substitute(g, store, map)));
    }
    return out;
  }

  void stores() {
    const auto expands = [&](Id r) {
      return g[r].op == Op::Range && is_expanded(range_kind(g[r]));
    };
    kernel.sink = g.add(Op::Sink, DType::Void, expanded_stores(g.sources(kernel.sink), expands));
  }
};

using namespace rules;

Id expand_reduce(Graph&, const Match& m) {
  return m.context<Expander>().reduce(m.root);
}
Id expand_filled(Graph&, const Match& m) {
  return m.context<Expander>().filled(m.root);
}

constexpr Rule kExpansion[] = {
    rule("expand-reduce", any_of(x, Op::Reduce), code<expand_reduce>),
    rule("expand-array", any_of(x, Op::Filled), code<expand_filled>),
};

}  // namespace

std::span<const Rule> expansion_rules() {
  return kExpansion;
}

void expand(Kernel& kernel) {
  static const RuleTable table(kExpansion);
  Expander expander{kernel};
  kernel.sink = rewrite(kernel.graph, kernel.sink, table, {.context = &expander});
  expander.stores();
  compact(kernel);
}

}  // namespace plugrad::codegen
