// A translation, no local rewrite: stores are transposed together. Loads and stores whose index
// holds lanes become accesses of a width: consecutive elements in one access, elements close
// together picked from vectors, stores beside each other transposed in registers, all others lane
// by lane.
//   before   load %x[%i*16 + iota 4]    load %x[(iota 4)*7]
//   after    load.x4 %x[%i*16]          vector(load %x[0], load %x[7], load %x[14], load %x[21])
// Where a gate holds in some lanes alone, consecutive elements are still one load, with a gate a
// lane. Afterwards no index holds an Iota; Lanes has the width of every value.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/analysis/lanes.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/register_transpose.h"
#include "ir/facts.h"
#include "ir/scratch.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

struct Vectoriser {
  Kernel& kernel;
  Graph& g = kernel.graph;
  Simplifier simplify{g, kernel.rules()};
  OpenRanges open{g};
  Lanes lane_count{g};
  std::vector<Id> now = std::vector<Id>(kernel.sink + 1, kNoId);  // what stands for a node

  // The Iota that a node depends on, outside of what it loads through vectors already made; kNoId
  // for none.
  Id iota_of(Id id) {
    for (Id member : open.members(open[id]))
      if (g[member].op == Op::Iota) return member;
    return kNoId;
  }

  // What a reduction over lanes of its own makes, or an array holds, stays as it is: its Iota is
  // the same node.
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
    std::vector<Id> sources(g.sources(id).begin(), g.sources(id).end());
    if (sources.size() > 2 && is_const(g, sources[2])) {
      if (const_int(g, sources[2]) == 0) {  // nothing is read, in any lane
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

  // Elements that lie close together are loaded as whole vectors, from which the lanes are picked:
  // strides of 2 to 4, repeated elements, reversed order. No load leaves the window between the
  // first and the last element: the last vector begins earlier and overlaps the one before.
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

  // A value that lost its lanes when it was simplified is the same in every lane.
  Id scalar_sources(Id id) {
    std::vector<Id> sources;
    for (Id s : g.sources(id)) sources.push_back(now[s]);
    if (g[id].op == Op::Lane && lane_count[sources[0]] == 1) return sources[0];
    return g.with_sources(id, sources);
  }

  // Appends the stores that do the work of one.
  void store(Id id, std::vector<Id>& out) {
    std::vector<Id> sources(g.sources(id).begin(), g.sources(id).end());
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

  // A store without a gate whose lanes lie apart.
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

  // The stores that do the work of all.
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
    const std::vector<Id> ranges(parts.ranges.begin(), parts.ranges.end());
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
