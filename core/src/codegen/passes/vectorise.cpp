// Gives loads and stores whose index holds lanes a width: consecutive elements become one access,
// close elements are picked from vectors, adjacent stores are transposed in registers, all others
// are split into lanes. A translation, no local rewrite.
//   before   load %x[%i*16 + iota 4]    load %x[(iota 4)*7]
//   after    load.x4 %x[%i*16]          vector(load %x[0], load %x[7], load %x[14], load %x[21])
// Register transpose, lane = 0, 1:
//   before   store %c[%i + 7*lane] of %a; store %c[%i + 1 + 7*lane] of %b
//   after    store.x2 %c[%i] (%a.0, %b.0); store.x2 %c[%i + 7] (%a.1, %b.1)
// Consecutive elements with a gate per lane are still one load. Afterwards no index holds an Iota.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/passes/passes.h"
#include "ir/facts.h"
#include "ir/scratch.h"
#include "symbolic/linear.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

/// A store of a vector whose lane i goes to element index + i * stride.
struct LaneStore {
  Id memory, index, value;
  int64_t stride;
  uint32_t lanes;
  RangeSet loops;  // its open ranges
};

struct Placed {
  size_t number;  // index in the list of stores
  Linear index;
};

bool are_alike(const LaneStore& a, const LaneStore& b) {
  return a.memory == b.memory && a.stride == b.stride && a.lanes == b.lanes && a.loops == b.loops;
}

/// Shuffles of vectors do best within 16 bytes: x86 has an instruction for each that interleaves
/// elements there, and needs two, or a table in memory, to interleave whole wider vectors.
constexpr uint32_t kBlockBytes = 16;

class RegisterTranspose {
 public:
  RegisterTranspose(Graph& g, Simplifier& simplify, std::span<const LaneStore> stores)
      : g_(g), simplify_(simplify), stores_(stores) {}

  /// `row` holds stores to adjacent elements: a power of two of them, at most their lane count.
  void transpose(std::span<const Placed> row, std::vector<Id>& out) {
    const LaneStore& first = stores_[row[0].number];
    const auto rows = static_cast<uint32_t>(row.size()), columns = first.lanes;
    vectors_.clear();
    for (const Placed& p : row) {
      vectors_.push_back({stores_[p.number].value, {}});
      for (uint32_t column = 0; column < columns; ++column)
        vectors_.back().columns.push_back(column);
    }
    const uint32_t bytes = size_of(g_[first.value].dtype);
    const uint32_t block = std::clamp(kBlockBytes / bytes, 1u, columns);
    for (uint32_t step = 1; step < rows; step *= 2)
      for (uint32_t i = 0; i < rows; ++i)
        if ((i & step) == 0) {
          if (step >= block && rows == columns)
            exchange_blocks(i, i + step, block);
          else
            interleave(i, i + step, step, step < block ? block : columns);
        }
    for (uint32_t column = 0; column < columns; ++column) {
      const Id index = simplify_(
          g_.binary(Op::Add, first.index, g_.index(static_cast<int64_t>(column) * first.stride)));
      out.push_back(g_.add(Op::Store, DType::Void, {first.memory, index, column_of(column, rows)}));
    }
  }

 private:
  struct Row {
    Id value;
    std::vector<uint32_t> columns;  // by lane: the column that its element belongs to
  };
  struct Picked {
    size_t vector;
    uint32_t lane;
  };

  /// Vector `a` gets the first half of each `width` lanes of both, `count` lanes of either in turn;
  /// `b` gets the second half.
  void interleave(size_t a, size_t b, uint32_t count, uint32_t width) {
    const uint32_t lanes = lane_count();
    std::vector<Picked> halves[2];
    for (uint32_t begin = 0; begin < lanes; begin += width / 2)
      for (uint32_t at = begin; at < begin + width / 2; at += count)
        for (size_t from : {a, b})
          for (uint32_t lane = at; lane < at + count; ++lane)
            halves[begin / (width / 2) % 2].push_back({from, lane});
    replace(a, b, halves);
  }

  /// Vector `a` gets the even blocks of both, `b` the odd ones.
  void exchange_blocks(size_t a, size_t b, uint32_t block) {
    std::vector<Picked> halves[2];
    for (size_t from : {a, b})
      for (uint32_t lane = 0; lane < lane_count(); ++lane)
        halves[lane / block % 2].push_back({from, lane});
    replace(a, b, halves);
  }

  uint32_t lane_count() const { return static_cast<uint32_t>(vectors_[0].columns.size()); }

  void replace(size_t a, size_t b, const std::vector<Picked> (&picked)[2]) {
    Row made[] = {combined(picked[0]), combined(picked[1])};
    vectors_[a] = std::move(made[0]);
    vectors_[b] = std::move(made[1]);
  }

  Row combined(std::span<const Picked> picked) {
    Row out;
    std::vector<Id> lanes;
    for (const auto& [vector, lane] : picked) {
      const Row& from = vectors_[vector];
      lanes.push_back(g_.add(Op::Lane, g_[from.value].dtype, {from.value}, lane_arg(lane, 1)));
      out.columns.push_back(from.columns[lane]);
    }
    out.value = g_.add(Op::Vector, g_[vectors_[picked[0].vector].value].dtype, lanes, lane_count());
    return out;
  }

  /// The column's elements, which are adjacent now.
  Id column_of(uint32_t column, uint32_t rows) {
    for (const Row& row : vectors_) {
      const auto found = std::ranges::find(row.columns, column);
      if (found == row.columns.end()) continue;
      if (rows == row.columns.size()) return row.value;
      const auto lane = static_cast<uint32_t>(found - row.columns.begin());
      return g_.add(Op::Lane, g_[row.value].dtype, {row.value}, lane_arg(lane, rows));
    }
    fail(ErrorKind::Internal, "column {} is in no vector", column);
  }

  Graph& g_;
  Simplifier& simplify_;
  std::span<const LaneStore> stores_;
  std::vector<Row> vectors_;
};

/// Removes from `all` the stores whose index differs from the first one's by a constant, and
/// returns them sorted by it.
std::vector<Placed> take_row(std::vector<Placed>& all, std::span<const LaneStore> stores) {
  std::vector<Placed> row;
  const LaneStore& first = stores[all[0].number];
  const std::vector<Term> terms = all[0].index.terms;
  const auto belongs = [&](const Placed& p) {
    return p.index.terms == terms && are_alike(stores[p.number], first);
  };
  std::ranges::copy_if(all, std::back_inserter(row), belongs);
  std::erase_if(all, belongs);
  std::ranges::sort(row, {}, [](const Placed& p) { return p.index.constant; });
  return row;
}

/// The largest power of two up to `most` such that so many stores from the first on are adjacent.
size_t neighbours(std::span<const Placed> row, size_t most) {
  size_t count = 1;
  while (count < std::min(row.size(), most) &&
         row[count].index.constant == row[count - 1].index.constant + 1)
    ++count;
  return std::bit_floor(count);
}

/// Replaces adjacent stores by stores of whole vectors. Sets `is_left` for the others, in the order
/// of `stores`.
std::vector<Id> transpose_stores(Graph& g, Simplifier& simplify, std::span<const LaneStore> stores,
                                 std::vector<bool>& is_left) {
  is_left.assign(stores.size(), true);
  std::vector<Placed> all;
  for (size_t i = 0; i < stores.size(); ++i)
    if (const auto index = linear_of(g, stores[i].index)) all.push_back({i, *index});
  RegisterTranspose transposer(g, simplify, stores);
  std::vector<Id> out;
  while (!all.empty()) {
    const std::vector<Placed> row = take_row(all, stores);
    for (size_t at = 0; at < row.size();) {
      const auto rest = std::span(row).subspan(at);
      const size_t count = neighbours(rest, stores[row[at].number].lanes);
      if (count > 1) {
        transposer.transpose(rest.first(count), out);
        for (const Placed& p : rest.first(count)) is_left[p.number] = false;
      }
      at += count;
    }
  }
  return out;
}

struct Vectoriser {
  Kernel& kernel;
  Graph& g = kernel.graph;
  Simplifier simplify{g, kernel.rules()};
  OpenRanges open{g};
  Lanes lane_count{g};
  std::vector<Id> now = std::vector<Id>(kernel.sink + 1, kNoId);  // by node: its replacement

  // The Iota that the node depends on; kNoId for none. A vector that is loaded depends on none.
  Id iota_of(Id id) {
    for (Id member : open.members(open[id]))
      if (g[member].op == Op::Iota) return member;
    return kNoId;
  }

  // A lane of the node. Nodes that do not depend on this Iota stay: a reduction or an array closes
  // its own, which may be the same node.
  Id at_lane(Id id, Id iota, int64_t lane) {
    std::vector<std::pair<Id, Id>> map = {{iota, g.index(lane)}};
    Reachable reachable;
    const auto is_still = [&](Id node) { return !open.depends(node, iota); };
    for (Id node : reachable.from(g, std::span(&id, 1), is_still))
      if (is_still(node))
        map.emplace_back(node, node < now.size() && now[node] != kNoId ? now[node] : node);
    return simplify(substitute(g, id, map));
  }

  Id lane_of(Id value, uint32_t lane, Lanes& lanes) {
    return lanes[value] == 1 ? value : g.add(Op::Lane, g[value].dtype, {value}, lane_arg(lane, 1));
  }

  Id load(Id id) {
    const Node n = g[id];
    std::vector<Id> sources = to_vector(g.sources(id));
    if (sources.size() > 2 && is_const(g, sources[2])) {
      if (const_int(g, sources[2]) == 0) {  // no lane reads anything
        const Id lanes = iota_of(id);
        return lanes == kNoId ? now[sources[3]]
                              : g.add(Op::Vector, n.dtype, {now[sources[3]]}, g[lanes].arg);
      }
      sources.resize(2);
      id = g.add(Op::Load, n.dtype, sources, n.arg);
    }
    const Id iota = iota_of(id);
    if (iota == kNoId) return scalar_sources(id);
    const auto width = static_cast<uint32_t>(g[iota].arg);
    const auto stride = stride_of(g, sources[1], iota);
    if (stride == 1 && (!gate_varies(sources, 2, iota) || gates_lanes(*kernel.caps, width))) {
      std::vector<Id> wide;
      for (Id s : sources) wide.push_back(now[s]);
      wide[1] = at_lane(sources[1], iota, 0);
      return g.add(Op::Load, n.dtype, wide, width);
    }
    if (sources.size() == 2)
      if (const auto steps = index_steps(g, simplify, sources[1], iota, width))
        if (const Id near = pick_lanes(id, iota, *steps); near != kNoId) return near;
    std::vector<Id> lanes;
    for (uint32_t lane = 0; lane < width; ++lane) lanes.push_back(at_lane(id, iota, lane));
    return g.add(Op::Vector, n.dtype, lanes, width);
  }

  // Loads elements that lie close together as whole vectors and picks the lanes: strides of 2 to 4,
  // repeated elements, reversed order. No load leaves the range from the first to the last element:
  // the last vector overlaps the one before.
  Id pick_lanes(Id load, Id iota, const std::vector<int64_t>& steps) {
    const auto [low, high] = std::ranges::minmax(steps);
    const auto width = static_cast<int64_t>(steps.size());
    if (high - low >= 4 * width) return kNoId;
    const DType dtype = g[load].dtype;
    const Id memory = now[g.sources(load)[0]];
    const Id first =
        simplify(g.binary(Op::Add, at_lane(g.sources(load)[1], iota, 0), g.index(low)));
    const int64_t window = high - low + 1;
    const auto lanes = static_cast<int64_t>(
        std::min<uint64_t>(width, std::bit_floor(static_cast<uint64_t>(window))));
    std::vector<Id> element(static_cast<size_t>(window), kNoId);
    for (int64_t begin = 0; begin < window; begin += lanes) {
      const int64_t at = std::min(begin, window - lanes);
      const Id index = simplify(g.binary(Op::Add, first, g.index(at)));
      const Id vector =
          g.add(Op::Load, dtype, {memory, index}, lanes == 1 ? 0 : static_cast<uint64_t>(lanes));
      for (int64_t i = begin; i < at + lanes; ++i)
        element[static_cast<size_t>(i)] =
            lanes == 1
                ? vector
                : g.add(Op::Lane, dtype, {vector}, lane_arg(static_cast<uint32_t>(i - at), 1));
    }
    std::vector<Id> picked;
    for (int64_t step : steps) picked.push_back(element[static_cast<size_t>(step - low)]);
    return g.add(Op::Vector, dtype, picked, steps.size());
  }

  bool gate_varies(const std::vector<Id>& sources, size_t gate, Id iota) {
    return sources.size() > gate && open.depends(sources[gate], iota);
  }

  // A value that simplification made the same in every lane is a scalar.
  Id scalar_sources(Id id) {
    std::vector<Id> sources;
    for (Id s : g.sources(id)) sources.push_back(now[s]);
    if (g[id].op == Op::Lane && lane_count[sources[0]] == 1) return sources[0];
    return g.with_sources(id, sources);
  }

  // Appends the stores that replace one store.
  void store(Id id, std::vector<Id>& out) {
    std::vector<Id> sources = to_vector(g.sources(id));
    const Id iota = iota_of(id);
    if (iota == kNoId) return out.push_back(scalar_sources(id));
    const auto width = static_cast<uint32_t>(g[iota].arg);
    const Id value = now[sources[2]];
    Lanes lanes(g);
    if (stride_of(g, sources[1], iota) == 1 && !gate_varies(sources, 3, iota)) {
      std::vector<Id> wide = {sources[0], at_lane(sources[1], iota, 0), value};
      if (lanes[value] == 1) wide[2] = g.add(Op::Vector, g[value].dtype, {value}, width);
      if (sources.size() == 4) wide.push_back(now[sources[3]]);
      return out.push_back(g.add(Op::Store, g[id].dtype, wide));
    }
    for (uint32_t lane = 0; lane < width; ++lane) {
      std::vector<Id> one = {sources[0], at_lane(sources[1], iota, lane),
                             lane_of(value, lane, lanes)};
      if (sources.size() == 4) one.push_back(at_lane(sources[3], iota, lane));
      out.push_back(g.add(Op::Store, g[id].dtype, one));
    }
  }

  // A store without a gate whose lanes are not consecutive.
  std::optional<LaneStore> lane_store(Id id) {
    const auto sources = g.sources(id);
    const Id iota = iota_of(id);
    if (iota == kNoId || sources.size() != 3) return std::nullopt;
    const auto stride = stride_of(g, sources[1], iota);
    const Id value = now[sources[2]];
    const auto width = static_cast<uint32_t>(g[iota].arg);
    if (!stride || *stride == 1 || Lanes(g)[value] != width) return std::nullopt;
    return LaneStore{sources[0], at_lane(sources[1], iota, 0), value, *stride, width, open[id]};
  }

  // The stores that replace `before`.
  std::vector<Id> stores_of(std::vector<Id> before) {
    std::vector<Id> ids, out;
    std::vector<LaneStore> apart;
    for (Id id : before)
      if (const auto one = lane_store(id)) {
        ids.push_back(id);
        apart.push_back(*one);
      }
    std::vector<bool> is_left;
    const std::vector<Id> transposed = transpose_stores(g, simplify, apart, is_left);
    for (Id id : before) {
      const auto it = std::ranges::find(ids, id);
      if (it == ids.end() || is_left[static_cast<size_t>(it - ids.begin())]) store(id, out);
    }
    out.insert(out.end(), transposed.begin(), transposed.end());
    return out;
  }

  Id filled(Id id) {
    const FilledParts parts = filled_parts(g, id);
    const std::vector<Id> ranges = to_vector(parts.ranges);
    return make_filled(g, stores_of({parts.stores.begin(), parts.stores.end()}), ranges);
  }

  void run() {
    Reachable reachable;
    const std::vector<Id> nodes = reachable.from(g, std::span(&kernel.sink, 1));
    for (Id id : nodes) {
      const Op op = g[id].op;
      if (op == Op::Load)
        now[id] = load(id);
      else if (op == Op::Filled)
        now[id] = filled(id);
      else if (op != Op::Sink && op != Op::Store)
        now[id] = scalar_sources(id);
    }
    const auto before = g.sources(kernel.sink);
    kernel.sink = g.add(Op::Sink, DType::Void, stores_of({before.begin(), before.end()}));
  }
};

}  // namespace

void vectorise(Kernel& kernel) {
  Vectoriser{kernel}.run();
  compact(kernel);
}

}  // namespace plugrad::codegen
