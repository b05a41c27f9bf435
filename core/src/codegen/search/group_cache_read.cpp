// Local-memory copies: if many work-items of a group read the same elements of an operand, the
// group copies its tile, a part of the reduction at a time:
//   block(k, 16) copy_parts(a, inside the outer k) copy_parts(b, inside the outer k)
#include <algorithm>
#include <set>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/search/heuristic.h"
#include "codegen/transforms/transforms.h"
#include "ir/facts.h"
#include "ir/scratch.h"
#include "plugrad/error.h"

namespace plugrad::codegen {
namespace {

using Kind = ScheduleStep::Kind;

// No card was available: all of these are chosen, not measured.
constexpr int64_t kEnoughReaders = 4;  // work-items that read an element, at least
constexpr int64_t kLongestPart = 32;   // iterations of the reduction between two barriers
constexpr int64_t kShortestPart = 8;
constexpr int64_t kMostCopyCode = 64;  // copies of one instruction
constexpr int64_t kPipelining =
    2;  // tiles in memory: copies start early because of the memory's latency

struct Reuse {
  std::set<uint32_t> slots;
  RangeSet shared = ~RangeSet{0};  // ranges that all the loads depend on
};

// The parameters of which many work-items load the same elements.
Reuse find_reuse(const Kernel& kernel, OpenRanges& open) {
  const Graph& g = kernel.graph;
  Reuse reuse;
  for (Id load : nodes_of(g, kernel.sink, Op::Load)) {
    const Id memory = g.sources(load)[0];
    if (g[memory].op != Op::Param || (param_info(g, memory).flags & PGR_PARAM_WRITE) != 0) continue;
    int64_t readers = 1;
    bool is_tile = false;
    for (Id r : kernel.axes) {
      if (range_kind(g[r]) != AxisKind::Local) continue;
      if (open.depends(load, r))
        is_tile = true;
      else
        readers *= range_size(g, r);
    }
    if (!is_tile || readers < kEnoughReaders) continue;
    reuse.slots.insert(param_info(g, memory).slot);
    reuse.shared &= open[load];
  }
  return reuse;
}

// The longest reduce loop that all tiles run over; the number of axes for none.
size_t longest_loop(const Kernel& kernel, OpenRanges& open, RangeSet shared) {
  size_t best = kernel.axes.size();
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis) {
    const bool is_common = (open.bit(kernel.axes[axis]) & shared) != 0;
    if (kind_of(kernel, axis) != AxisKind::Reduce || !is_common || !may_split(kernel, axis))
      continue;
    if (best == kernel.axes.size() || size_of_axis(kernel, axis) > size_of_axis(kernel, best))
      best = axis;
  }
  return best;
}

// Divisors for the length of a part, longest first; a length with a remainder only for long loops
// without a divisor.
std::vector<int64_t> lengths_of_part(int64_t size) {
  std::vector<int64_t> lengths;
  for (int64_t length = std::min(size, kLongestPart); length >= kShortestPart; --length)
    if (size % length == 0) lengths.push_back(length);
  if (lengths.empty() && size >= 4 * kLongestPart) lengths = {kLongestPart / 2, kShortestPart};
  return lengths;
}

uint64_t copied_bytes(const Kernel& kernel) {
  uint64_t bytes = 0;
  const Graph& g = kernel.graph;
  for (Id filled : nodes_of(g, kernel.sink, Op::Filled)) bytes += bytes_of_copy(g, filled);
  return bytes;
}

int64_t registers_tiled(const Kernel& kernel) {
  int64_t copies = 1;
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (kind_of(kernel, axis) == AxisKind::Upcast) copies *= size_of_axis(kernel, axis);
  return copies;
}

// Unrolls the innermost reduce loop as far as the register tile permits.
void unroll_part(Kernel& kernel, int64_t copies) {
  size_t innermost = kernel.axes.size();
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (kind_of(kernel, axis) == AxisKind::Reduce) innermost = axis;
  for (int64_t amount : {8, 4, 2})
    if (size_of_axis(kernel, innermost) % amount == 0 && copies * amount <= kMostCopyCode)
      return apply(kernel, {Kind::Unroll, static_cast<uint32_t>(innermost), amount});
}

// Splits the loop into parts of `length` and copies the parameters inside each.
void cache_read_parts(Kernel& kernel, size_t loop, int64_t length,
                      const std::set<uint32_t>& slots) {
  const int64_t copies = registers_tiled(kernel);  // before the copies are expanded too
  size_t place = 0;
  while (kind_of(kernel, place) != AxisKind::Reduce) ++place;
  if (loop != place)
    apply(kernel, {Kind::Swap, static_cast<uint32_t>(place), static_cast<int64_t>(loop)});
  const bool has_parts = length < size_of_axis(kernel, place);
  if (has_parts) apply(kernel, {Kind::Block, static_cast<uint32_t>(place), length});
  const uint32_t number = range_axis(kernel.graph[kernel.axes[place]]);
  for (uint32_t slot : slots) {
    // After the loop of a copy.
    while (range_axis(kernel.graph[kernel.axes[place]]) != number) ++place;
    apply(kernel, {Kind::CacheRead, slot, static_cast<int64_t>(place + has_parts)});
  }
  unroll_part(kernel, copies);
}

}  // namespace

bool cache_read_tiles(Kernel& kernel) {
  const pgr_device_caps& caps = *kernel.caps;
  if (caps.local_in_cache) return false;  // the cache serves all readers without a copy
  OpenRanges open(kernel.graph);
  const Reuse reuse = find_reuse(kernel, open);
  if (reuse.slots.empty()) return false;
  const size_t loop = longest_loop(kernel, open, reuse.shared);
  if (loop == kernel.axes.size()) return false;
  return cache_read_longest_parts(kernel, loop, lengths_of_part(size_of_axis(kernel, loop)),
                                  reuse.slots);
}

namespace {

// Leaves room for a second group, which computes while the first one waits.
bool fits_twice(const Kernel& kernel) {
  return 2 * copied_bytes(kernel) <=
         std::max(kernel.caps->local_bytes, kernel.caps->core_local_bytes);
}

// Whether all copies into local memory are asynchronous.
bool are_asynchronous(const Kernel& kernel) {
  const Graph& g = kernel.graph;
  for (Id filled : nodes_of(g, kernel.sink, Op::Filled))
    for (Id store : filled_parts(g, filled).stores) {
      const Id value = g.sources(store)[2];
      const auto lanes = g[value].op == Op::Load ? std::max<uint64_t>(1, g[value].arg) : 1;
      if (asynchronous_load(g, *kernel.caps, store, static_cast<uint32_t>(lanes)) == kNoId)
        return false;
    }
  return true;
}

// Starts the copies `iterations` iterations before their use.
void pipeline_all(Kernel& kernel, const std::set<uint32_t>& slots, int64_t iterations) {
  require(are_asynchronous(kernel), "[codegen] work-items make a part of the copies");
  for (uint32_t slot : slots) apply(kernel, {Kind::Pipeline, slot, iterations});
}

}  // namespace

// With shorter parts if necessary, so that copies overlap with use.
bool cache_read_longest_parts(Kernel& kernel, size_t loop, const std::vector<int64_t>& lengths,
                              const std::set<uint32_t>& slots) {
  const auto copy_parts = [&](int64_t length, int64_t iterations) {
    return attempt(kernel,
                   [&](Kernel& trial) -> size_t {
                     cache_read_parts(trial, loop, length, slots);
                     if (iterations > 0) pipeline_all(trial, slots, iterations);
                     require(fits_twice(trial), "[codegen] no room for a second group");
                     return 0;
                   })
        .has_value();
  };
  if (kernel.caps->async_copy_bytes != 0)
    for (int64_t length : lengths)
      for (int64_t iterations = kPipelining; iterations > 0; --iterations)
        if (copy_parts(length, iterations)) return true;
  return std::ranges::any_of(lengths, [&](int64_t length) { return copy_parts(length, 0); });
}

}  // namespace plugrad::codegen
