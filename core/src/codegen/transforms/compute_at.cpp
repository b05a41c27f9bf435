// compute_at: computes a value once into a local buffer if the kernel computes it along a reduce
// loop and again along other loops of that length, e.g. softmax's exponentials, which are summed
// and then divided by the sum. A schedule step, no local rewrite.
//   before   reduce add f(%i, %r), %r    …    f(%i, %j)      inside %i;  %r, %j = range n
//   after    %a = filled s[%w] = f(%i, %w), over %w
//            reduce add (load %a, %r), %r    …    load %a, %j
// Loops inside the step's place become inner dimensions of the array. If the result is stored along
// %j, the output serves as the buffer. The scheduler marks such values (Keep in ir/kernel_ast.h).
#include <algorithm>
#include <functional>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/analysis/work_items.h"
#include "codegen/kernel.h"
#include "codegen/passes/passes.h"
#include "codegen/transforms/transforms.h"
#include "ir/facts.h"
#include "ir/kernel_ast.h"
#include "ir/scratch.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

// The marked values of the same number, each with its range: one value along different loops.
std::vector<Id> twins_of(const Kernel& kernel, const std::vector<Id>& marked, OpenRanges& open,
                         Id value, Id range) {
  const Graph& g = kernel.graph;
  std::vector<Id> out;
  for (Id other : marked) {
    if (other == value || keep_mark(g, other).number != keep_mark(g, value).number) continue;
    for (Id axis : kernel.axes)
      if (axis != range && range_size(g, axis) == range_size(g, range) && !is_bounded(g[axis]) &&
          open.depends(other, axis) &&
          (open[value] & ~open.bit(range)) == (open[other] & ~open.bit(axis)))
        out.insert(out.end(), {other, axis});
  }
  return out;
}

}  // namespace

Repeated find_repeated(const Kernel& kernel, size_t axis) {
  const Graph& g = kernel.graph;
  const Id range = kernel.axes[axis];
  if (range_kind(g[range]) != AxisKind::Reduce || is_bounded(g[range])) return {};
  OpenRanges open(g);
  const std::vector<Id> marked = nodes_of(g, kernel.sink, Op::Keep);
  for (auto it = marked.rbegin(); it != marked.rend(); ++it) {
    if (!open.depends(*it, range) || !claims_storage(*kernel.caps, g[*it].dtype)) continue;
    const std::vector<Id> twins = twins_of(kernel, marked, open, *it, range);
    const bool in_blocks = keep_mark(g, *it).in_blocks;
    if (twins.empty() && !in_blocks) continue;
    Repeated out{{*it, range}, in_blocks};
    out.values.insert(out.values.end(), twins.begin(), twins.end());
    return out;
  }
  return {};
}

namespace {
using namespace rules;

constexpr Rule kKeepMarks[] = {
    rule("drop-keep", node(Op::Keep, x), x),
};

}  // namespace

std::span<const Rule> keep_mark_rules() {
  return kKeepMarks;
}

void drop_marks(Kernel& kernel) {
  static const RuleTable table(kKeepMarks);
  if (nodes_of(kernel.graph, kernel.sink, Op::Keep).empty()) return;
  kernel.sink = rewrite(kernel.graph, kernel.sink, table);
  replace(kernel, {});
}

uint64_t bytes_of_buffer(const Kernel& kernel, const Repeated& repeated, size_t place) {
  OpenRanges open(kernel.graph);
  uint64_t bytes = size_of(kernel.graph[repeated.values[0]].dtype);
  for (size_t i = 0; i < kernel.axes.size(); ++i)
    if (i >= place && open.depends(repeated.values[0], kernel.axes[i]))
      bytes *= static_cast<uint64_t>(range_size(kernel.graph, kernel.axes[i]));
  return bytes;
}

namespace {

// The loops inside `place` that the value varies over, outermost first: the buffer's dimensions.
std::vector<Id> dimensions(const Kernel& kernel, const Repeated& repeated, size_t place,
                           const std::string& text) {
  const Graph& g = kernel.graph;
  OpenRanges open(g);
  std::vector<Id> dims;
  for (size_t i = place; i < kernel.axes.size(); ++i) {
    const Id r = kernel.axes[i];
    if (r == repeated.values[1] || !open.depends(repeated.values[0], r)) continue;
    require(range_kind(g[r]) == AxisKind::Loop && !is_bounded(g[r]),
            "[codegen] {}: axis {} is no plain loop", text, i);
    dims.push_back(r);
  }
  dims.push_back(repeated.values[1]);
  return dims;
}

// The range along which the output can serve as the buffer, or kNoId. The kernel must write the
// result from the value element by element, after all other uses of the value.
Id range_of_output(const Kernel& kernel, const Repeated& repeated) {
  const Graph& g = kernel.graph;
  if (g.sources(kernel.sink).size() != 1) return kNoId;
  const Id store = g.sources(kernel.sink)[0], target = g.sources(store)[0];
  // A gated remainder would fill the output again after it has been stored.
  if (g.sources(store).size() == 4 || g[target].dtype != g[repeated.values[0]].dtype) return kNoId;
  if (reads(g, store, target)) return kNoId;
  OpenRanges open(g);
  for (size_t i = 2; i < repeated.values.size(); i += 2) {
    const Id range = repeated.values[i + 1];
    if (range_kind(g[range]) != AxisKind::Loop || open[store] != open[repeated.values[i]]) continue;
    const std::vector<Id> reduces = nodes_of(g, store, Op::Reduce);
    if (std::ranges::none_of(reduces, [&](Id reduce) { return open.depends(reduce, range); }))
      return range;
  }
  return kNoId;
}

// An array or the output, with the index of an element for given dimensions.
struct Place {
  Id memory = kNoId;
  std::function<Id(std::span<const Id>)> index;
};

Place buffer_for(Kernel& kernel, const std::vector<Id>& dims, DType dtype) {
  Graph& g = kernel.graph;
  int64_t count = 1;
  for (Id r : dims) count *= range_size(g, r);
  const auto index = [&g, dims](std::span<const Id> at) {
    Id sum = at.back();  // rows side by side: lanes run over them
    for (size_t i = 0; i + 1 < dims.size(); ++i)
      sum = g.binary(Op::Add, g.binary(Op::Mul, sum, g.index(range_size(g, dims[i]))), at[i]);
    return sum;
  };
  return {make_array(g, dtype, {next_array(kernel), PGR_SPACE_PRIVATE, count}), index};
}

// Whether the array that is computed from the value can hold the value: its only store writes
// element by element, at the same index, after all other uses of the value.
bool can_hold(Kernel& kernel, Id filled, const Repeated& repeated, size_t twin,
              const std::vector<Id>& dims) {
  Graph& g = kernel.graph;
  OpenRanges open(g);
  const FilledParts parts = filled_parts(g, filled);
  const Id store = parts.stores[0], array = parts.array, value = repeated.values[twin];
  std::vector<Id> here = dims, ranges(parts.ranges.begin(), parts.ranges.end());
  here.back() = repeated.values[twin + 1];
  if (parts.stores.size() != 1 || g[array].op != Op::Array || g[array].dtype != g[value].dtype)
    return false;
  if (open[store] != open[value] || !std::ranges::is_permutation(ranges, here)) return false;
  const auto ends_before = [&](Id reduce) { return !open.depends(reduce, here.back()); };
  if (!std::ranges::all_of(nodes_of(g, store, Op::Reduce), ends_before)) return false;
  Reachable reachable;
  for (Id id :
       reachable.from(g, std::span(&kernel.sink, 1), [&](Id node) { return node == filled; }))
    for (size_t i = 0; i < repeated.values.size(); i += 2)
      if (repeated.values[i] == id) return false;
  const Place place = buffer_for(kernel, dims, g[value].dtype);
  return array_info(g, place.memory).elem_count == array_info(g, array).elem_count &&
         Simplifier(g, kernel.rules())(place.index(here)) == g.sources(store)[1];
}

Id array_for_value(Kernel& kernel, const Repeated& repeated, const std::vector<Id>& dims) {
  for (size_t twin = 2; twin < repeated.values.size(); twin += 2)
    for (Id filled : nodes_of(kernel.graph, kernel.sink, Op::Filled))
      if (closes(kernel.graph, filled, repeated.values[twin + 1]) &&
          can_hold(kernel, filled, repeated, twin, dims))
        return filled_parts(kernel.graph, filled).array;
  return kNoId;
}

Place output_for(Kernel& kernel, std::vector<Id> dims, Id range) {
  Graph& g = kernel.graph;
  const Id store = g.sources(kernel.sink)[0], place = g.sources(store)[1];
  dims.back() = range;
  const auto index = [&g, dims, place](std::span<const Id> at) {
    std::vector<std::pair<Id, Id>> map;
    for (size_t i = 0; i < dims.size(); ++i)
      if (dims[i] != at[i]) map.emplace_back(dims[i], at[i]);
    std::ranges::sort(map);
    return substitute(g, place, map);
  };
  const Id memory = g.sources(store)[0], now = readable(g, memory);
  const std::pair<Id, Id> map[] = {{memory, now}};
  if (now != memory) kernel.sink = substitute(g, kernel.sink, map);
  return {now, index};
}

}  // namespace

bool reads(const Graph& g, Id value, Id param) {
  return std::ranges::any_of(nodes_of(g, value, Op::Load), [&](Id load) {
    const Id memory = g.sources(load)[0];
    return memory == param ||
           (g[memory].op == Op::Filled && filled_parts(g, memory).array == param);
  });
}

namespace {

// Whether rows can be kept in the output: the loops of the store that do not fill it run one after
// another inside those that do.
bool may_use_output(const Kernel& kernel, OpenRanges& open, Id store, Id filled) {
  const Graph& g = kernel.graph;
  bool inside = false;
  for (Id axis : kernel.axes) {
    const AxisKind kind = range_kind(g[axis]);
    if (!is_output_axis(kind) || !open.depends(store, axis)) continue;
    const bool fills = open.depends(filled, axis);
    if (fills ? inside : kind != AxisKind::Loop) return false;
    inside = inside || !fills;
  }
  return true;
}

// The same for rows kept in an array and the reductions over them.
bool may_use_array(const Kernel& kernel, OpenRanges& open, Id filled) {
  const Graph& g = kernel.graph;
  const FilledParts parts = filled_parts(g, filled);
  const auto waits = [&](Id inner) {
    return inner != filled && filled_parts(g, inner).array == parts.array;
  };
  if (std::ranges::none_of(nodes_of(g, filled, Op::Filled), waits)) return true;
  RangeSet reduced = 0;
  for (Id reduce : nodes_of(g, filled, Op::Reduce)) reduced |= open[reduce];
  bool inside = false;
  for (Id axis : kernel.axes) {
    if (range_kind(g[axis]) != AxisKind::Loop || !closes(g, filled, axis)) continue;
    const bool fills = (reduced & open.bit(axis)) != 0;
    if (fills && inside) return false;
    inside = inside || !fills;
  }
  return true;
}

}  // namespace

void check_compute_at(const Kernel& kernel, const ScheduleStep& change) {
  const Graph& g = kernel.graph;
  OpenRanges open(g);
  for (Id store : g.sources(kernel.sink))
    for (Id filled : nodes_of(g, store, Op::Filled)) {
      const bool is_output = g[filled_parts(g, filled).array].op == Op::Param;
      require(is_output ? may_use_output(kernel, open, store, filled)
                        : may_use_array(kernel, open, filled),
              "[codegen] {}: the rows are kept where other rows would be stored",
              to_string({change}));
    }
}

void compute_at(Kernel& kernel, const ScheduleStep& change) {
  Graph& g = kernel.graph;
  const std::string text = to_string({change});
  check_private_place(kernel, change);
  const Repeated repeated = find_repeated(kernel, change.axis);
  require(!repeated.values.empty(), "[codegen] {}: no value along the axis is computed again",
          text);
  const std::vector<Id> dims =
      dimensions(kernel, repeated, static_cast<size_t>(change.amount), text);
  const Id value = repeated.values[0], output = range_of_output(kernel, repeated);
  const DType dtype = g[value].dtype;
  Place place =
      output == kNoId ? buffer_for(kernel, dims, dtype) : output_for(kernel, dims, output);
  if (output == kNoId)
    if (const Id array = array_for_value(kernel, repeated, dims); array != kNoId)
      place.memory = array;
  std::vector<std::pair<Id, Id>> inner;
  std::vector<Id> closed;
  uint32_t number = new_axis(kernel);
  for (Id r : dims) {
    closed.push_back(make_range(g, range_size(g, r), number++, AxisKind::Loop));
    inner.emplace_back(r, closed.back());
  }
  std::ranges::sort(inner);
  const Id store =
      g.add(Op::Store, DType::Void,
            {place.memory, place.index(closed), substitute(g, g[value].src[0], inner)});
  const Id filled = make_filled(g, {&store, 1}, closed);
  std::vector<std::pair<Id, Id>> map;
  for (size_t i = 0; i < repeated.values.size(); i += 2) {
    std::vector<Id> here = dims;
    here.back() = repeated.values[i + 1];
    map.emplace_back(repeated.values[i], g.add(Op::Load, dtype, {filled, place.index(here)}));
  }
  std::ranges::sort(map);
  replace(kernel, map);
  check_local_buffers(kernel, text);
}

}  // namespace plugrad::codegen
