#include "codegen/transforms/software_pipelining.h"

#include <algorithm>

#include "base/check.h"
#include "codegen/claims.h"
#include "codegen/emit/ir_bits.h"
#include "codegen/passes/tables.h"
#include "ir/facts.h"
#include "ir/range.h"
#include "ir/scratch.h"

namespace plugrad::codegen {
namespace {

int64_t tiles_ahead(const Graph& g, Id filled) {
  return is_local(g, filled) ? array_info(g, filled_parts(g, filled).array).ahead : 0;
}

// Of loops; the ends of one may be counted by those outside of it, so that an index depends on
// these too.
Id innermost(const Graph& g, std::span<const Id> loops) {
  const auto axis = [&](Id r) { return range_axis(g[r]); };
  const auto found = std::ranges::max_element(loops, {}, axis);
  return found == loops.end() ? kNoId : *found;
}

// The tile of the turn.
Id place_of_turn(Graph& g, Id loop, int64_t tiles, int64_t elem_count) {
  return g.binary(Op::Mul, g.binary(Op::FloorMod, loop, g.index(tiles)), g.index(elem_count));
}

bool is_zero(const Graph& g, Id value) {
  if (g[value].op == Op::Vector)
    return std::ranges::all_of(g.sources(value), [&](Id s) { return is_zero(g, s); });
  return is_const(g, value) && ir_bits(g, value) == 0;
}

}  // namespace

std::vector<Id> reduce_loops(const Graph& g, OpenRanges& open, Id id) {
  std::vector<Id> loops;
  for (Id r : open.members(open[id]))
    if (g[r].op == Op::Range && range_kind(g[r]) == AxisKind::Reduce) loops.push_back(r);
  return loops;
}

uint64_t bytes_of_copy(const Graph& g, Id filled) {
  const ArrayInfo info = array_info(g, filled_parts(g, filled).array);
  return static_cast<uint64_t>((1 + info.ahead) * info.elem_count) * size_of(g[filled].dtype);
}

namespace {
using namespace rules;

Id turn_of(Graph& g, OpenRanges& open, Id filled) {
  const ArrayInfo info = array_info(g, filled_parts(g, filled).array);
  const Id loop = innermost(g, reduce_loops(g, open, filled));
  ensure(loop != kNoId, "[codegen] a copy that is made ahead of no loop");
  return place_of_turn(g, loop, 1 + info.ahead, info.elem_count);
}

Id moved(Graph& g, Id access, Id turn) {
  std::vector<Id> sources(g.sources(access).begin(), g.sources(access).end());
  sources[1] = g.binary(Op::Add, sources[1], turn);
  return g.add(g[access].op, g[access].dtype, sources, g[access].arg);
}

bool is_ahead(const Graph& g, Id memory) {
  return g[memory].op == Op::Filled && tiles_ahead(g, memory) > 0;
}
bool fills_ahead(const Graph& g, const Match& m) {
  return is_ahead(g, m.before);
}
bool reads_ahead(const Graph& g, const Match& m) {
  return is_ahead(g, g.sources(m.before)[0]);
}

Id fill_by_turns(Graph& g, const Match& m) {
  const Id turn = turn_of(g, m.context<OpenRanges>(), m.before);
  const FilledParts parts = filled_parts(g, m.root);
  ArrayInfo info = array_info(g, parts.array);
  info.elem_count *= 1 + info.ahead;
  const std::vector<Id> ranges(parts.ranges.begin(), parts.ranges.end()),
      before(parts.stores.begin(), parts.stores.end());
  const Id array = make_array(g, g[parts.array].dtype, info);
  std::vector<Id> stores;
  for (Id store : before) {
    std::vector<Id> sources(g.sources(store).begin(), g.sources(store).end());
    sources[0] = array;
    stores.push_back(moved(g, g.add(Op::Store, DType::Void, sources), turn));
  }
  return make_filled(g, stores, ranges);
}

Id read_by_turns(Graph& g, const Match& m) {
  return moved(g, m.root, turn_of(g, m.context<OpenRanges>(), g.sources(m.before)[0]));
}

// clang-format off
constexpr Rule kCopiesAhead[] = {
    rule("fill-by-turns", any_of(x, Op::Filled), code<fill_by_turns>, when(check<fills_ahead>)),
    rule("read-by-turns", any_of(x, Op::Load),   code<read_by_turns>, when(check<reads_ahead>)),
};
// clang-format on
}  // namespace

std::span<const Rule> pipelining_rules() {
  return kCopiesAhead;
}

void place_pipelined_tiles(Kernel& kernel) {
  static const RuleTable table(kCopiesAhead);
  const Graph& g = kernel.graph;
  const std::vector<Id> all = nodes_of(g, kernel.sink, Op::Filled);
  if (std::ranges::none_of(all, [&](Id filled) { return is_ahead(g, filled); })) return;
  OpenRanges open(g);
  kernel.sink = rewrite(kernel.graph, kernel.sink, table, {.context = &open});
  replace(kernel, {});
}

Id pipelined_loop(const Graph& g, OpenRanges& open, Id filled) {
  if (tiles_ahead(g, filled) == 0) return kNoId;
  // Its place says which tile it is.
  const FilledParts parts = filled_parts(g, filled);
  std::vector<Id> loops = reduce_loops(g, open, g.sources(parts.stores[0])[1]);
  std::erase_if(loops,
                [&](Id r) { return std::ranges::find(parts.ranges, r) != parts.ranges.end(); });
  return innermost(g, loops);
}

Id asynchronous_load(const Graph& g, const pgr_device_caps& caps, Id store, uint32_t lanes) {
  const Id load = g.sources(store)[2];
  if (g[load].op != Op::Load || is_64_bit_integer(g[load].dtype))
    return kNoId;  // which may become pairs
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

}  // namespace plugrad::codegen
