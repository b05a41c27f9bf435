// ahead(slot, n), software pipelining (place_pipelined_tiles in transforms.h): copies into local
// memory start n iterations before their use. A schedule step, no local rewrite.
#include <algorithm>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/emit/ir_writer.h"
#include "codegen/kernel.h"
#include "codegen/passes/passes.h"
#include "codegen/transforms/transforms.h"
#include "ir/facts.h"
#include "ir/range.h"
#include "ir/scratch.h"

namespace plugrad::codegen {
namespace {

int64_t tiles_ahead(const Graph& g, Id filled) {
  return is_local(g, filled) ? array_info(g, filled_parts(g, filled).array).ahead : 0;
}

// The innermost of the loops that the index depends on. The bounds of a loop may depend on loops
// outside it, so the index depends on these too.
Id innermost(const Graph& g, std::span<const Id> loops) {
  const auto axis = [&](Id r) { return range_axis(g[r]); };
  const auto found = std::ranges::max_element(loops, {}, axis);
  return found == loops.end() ? kNoId : *found;
}

// The offset of the iteration's tile.
Id tile_offset(Graph& g, Id loop, int64_t tiles, int64_t elem_count) {
  return g.binary(Op::Mul, g.binary(Op::FloorMod, loop, g.index(tiles)), g.index(elem_count));
}

bool is_zero(const Graph& g, Id value) {
  if (g[value].op == Op::Vector)
    return std::ranges::all_of(g.sources(value), [&](Id s) { return is_zero(g, s); });
  return is_const(g, value) && ir_bits(g, value) == 0;
}

// Iterations; each holds a tile in local memory. Chosen, not measured.
constexpr int64_t kMostAhead = 7;
constexpr int64_t kTileAlign = 16;  // bytes; the widest asynchronous copy (PTX ISA, cp.async)

// Loops of nested reductions do not nest in the order of their axes.
bool belong_to_one_reduction(const Graph& g, Id sink, std::span<const Id> loops) {
  return std::ranges::all_of(nodes_of(g, sink, Op::Reduce), [&](Id reduce) {
    const auto closed = g.sources(reduce).subspan(1);
    const auto closes = [&](Id r) { return std::ranges::find(closed, r) != closed.end(); };
    return std::ranges::none_of(loops, closes) || std::ranges::all_of(loops, closes);
  });
}

// The reduce loops that a value depends on.
std::vector<Id> reduce_loops(const Graph& g, OpenRanges& open, Id id) {
  std::vector<Id> loops;
  for (Id r : open.members(open[id]))
    if (g[r].op == Op::Range && range_kind(g[r]) == AxisKind::Reduce) loops.push_back(r);
  return loops;
}

}  // namespace

uint64_t bytes_of_copy(const Graph& g, Id filled) {
  const ArrayInfo info = array_info(g, filled_parts(g, filled).array);
  return static_cast<uint64_t>((1 + info.ahead) * info.elem_count) * size_of(g[filled].dtype);
}

namespace {
using namespace rules;

Id iteration_of(Graph& g, OpenRanges& open, Id filled) {
  const ArrayInfo info = array_info(g, filled_parts(g, filled).array);
  const Id loop = innermost(g, reduce_loops(g, open, filled));
  ensure(loop != kNoId, "[codegen] a pipelined copy outside its loop");
  return tile_offset(g, loop, 1 + info.ahead, info.elem_count);
}

Id moved(Graph& g, Id access, Id iteration) {
  std::vector<Id> sources = to_vector(g.sources(access));
  sources[1] = g.binary(Op::Add, sources[1], iteration);
  return g.add(g[access].op, g[access].dtype, sources, g[access].arg);
}

bool is_pipelined(const Graph& g, Id memory) {
  return g[memory].op == Op::Filled && tiles_ahead(g, memory) > 0;
}
bool fills_pipelined(const Graph& g, const Match& m) {
  return is_pipelined(g, m.before);
}
bool reads_pipelined(const Graph& g, const Match& m) {
  return is_pipelined(g, g.sources(m.before)[0]);
}

Id fill_by_iteration(Graph& g, const Match& m) {
  const Id iteration = iteration_of(g, m.context<OpenRanges>(), m.before);
  const FilledParts parts = filled_parts(g, m.root);
  ArrayInfo info = array_info(g, parts.array);
  info.elem_count *= 1 + info.ahead;
  const std::vector<Id> ranges = to_vector(parts.ranges), before = to_vector(parts.stores);
  const Id array = make_array(g, g[parts.array].dtype, info);
  std::vector<Id> stores;
  for (Id store : before) {
    std::vector<Id> sources = to_vector(g.sources(store));
    sources[0] = array;
    stores.push_back(moved(g, g.add(Op::Store, DType::Void, sources), iteration));
  }
  return make_filled(g, stores, ranges);
}

Id read_by_iteration(Graph& g, const Match& m) {
  return moved(g, m.root, iteration_of(g, m.context<OpenRanges>(), g.sources(m.before)[0]));
}

// clang-format off
constexpr Rule kPipelinedCopies[] = {
    rule("pipelined-fill", any_of(x, Op::Filled), code<fill_by_iteration>,
         when(check<fills_pipelined>)),
    rule("pipelined-read", any_of(x, Op::Load), code<read_by_iteration>,
         when(check<reads_pipelined>)),
};
// clang-format on
}  // namespace

std::span<const Rule> pipelining_rules() {
  return kPipelinedCopies;
}

void place_pipelined_tiles(Kernel& kernel) {
  static const RuleTable table(kPipelinedCopies);
  const Graph& g = kernel.graph;
  const std::vector<Id> all = nodes_of(g, kernel.sink, Op::Filled);
  if (std::ranges::none_of(all, [&](Id filled) { return is_pipelined(g, filled); })) return;
  OpenRanges open(g);
  kernel.sink = rewrite(kernel.graph, kernel.sink, table, {.context = &open});
  replace(kernel, {});
}

Id pipelined_loop(const Graph& g, OpenRanges& open, Id filled) {
  if (tiles_ahead(g, filled) == 0) return kNoId;
  // The address of a pipelined array selects the tile.
  const FilledParts parts = filled_parts(g, filled);
  std::vector<Id> loops = reduce_loops(g, open, g.sources(parts.stores[0])[1]);
  std::erase_if(loops,
                [&](Id r) { return std::ranges::find(parts.ranges, r) != parts.ranges.end(); });
  return innermost(g, loops);
}

Id asynchronous_load(const Graph& g, const pgr_device_caps& caps, Id store, uint32_t lanes) {
  const Id load = g.sources(store)[2];
  if (g[load].op != Op::Load || is_64_bit_integer(g[load].dtype))
    return kNoId;  // 64-bit elements may become pairs of words
  const auto sources = g.sources(load);
  if (g[sources[0]].op != Op::Param) return kNoId;
  const bool is_gated = sources.size() == 4;
  if (is_gated && (g[sources[2]].op == Op::Vector || !is_zero(g, sources[3]))) return kNoId;
  const uint32_t bytes = lanes * static_cast<uint32_t>(size_of(g[load].dtype));
  const bool is_size = bytes == 4 || bytes == 8 || bytes == 16;
  const bool can = claims(caps, Op::AsyncCopy, g[load].dtype) && is_size &&
                   (caps.async_copy_bytes & bytes) != 0 && caps.buffer_align_bytes >= bytes;
  return can ? load : kNoId;
}

void pipeline_copies(Kernel& kernel, const ScheduleStep& change) {
  Graph& g = kernel.graph;
  const std::string text = to_string({change});
  require(kernel.caps->async_copy_bytes != 0, "[codegen] {}: the device has no asynchronous copies",
          text);
  require(change.amount >= 1 && change.amount <= kMostAhead,
          "[codegen] {}: {} iterations ahead; 1 to {} are possible", text, change.amount,
          kMostAhead);
  OpenRanges open(g);
  std::vector<std::pair<Id, Id>> map;
  for (Id filled : nodes_of(g, kernel.sink, Op::Filled)) {
    const FilledParts parts = filled_parts(g, filled);
    const bool is_meant =
        is_local(g, filled) && std::ranges::any_of(nodes_of(g, filled, Op::Load), [&](Id load) {
          const Id memory = g.sources(load)[0];
          return g[memory].op == Op::Param && param_info(g, memory).slot == change.axis;
        });
    if (!is_meant) continue;
    ArrayInfo info = array_info(g, parts.array);
    require(info.ahead == 0, "[codegen] {}: it is copied ahead already", text);
    const std::vector<Id> loops = reduce_loops(g, open, filled);
    require(!loops.empty(), "[codegen] {}: it is not copied inside a reduce loop", text);
    require(belong_to_one_reduction(g, kernel.sink, loops),
            "[codegen] {}: it is copied in loops of two reductions", text);
    const auto elements = kTileAlign / static_cast<int64_t>(size_of(g[filled].dtype));
    info.elem_count = (info.elem_count + elements - 1) / elements * elements;
    info.ahead = change.amount;
    map.emplace_back(parts.array, make_array(g, g[parts.array].dtype, info));
  }
  require(!map.empty(), "[codegen] {}: nothing of parameter {} is copied into local memory", text,
          change.axis);
  replace(kernel, map);
}

}  // namespace plugrad::codegen
