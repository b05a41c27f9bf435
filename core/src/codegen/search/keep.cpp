// What a kernel computes along a reduce loop and again along other loops of that length is computed
// once, into scratch: softmax's exponentials, which are summed and then divided by the sum.
//   before   reduce add f(%i, %r), %r    …    f(%i, %j)               inside %i     %r, %j = range
//   n after    %a = filled s[%w] = f(%i, %w), over %w
//            reduce add (load %a, %r), %r    …    load %a, %j
// Loops further inside than the change says are dimensions of the array too. Where the result is
// stored along %j, the values wait in its place instead of an array.
#include <algorithm>
#include <functional>
#include <map>

#include "base/check.h"
#include "codegen/access.h"
#include "codegen/claims.h"
#include "codegen/gates.h"
#include "codegen/search/changes.h"
#include "codegen/work_items.h"
#include "symbolic/symbolic.h"
#include "uop/facts.h"
#include "uop/scratch.h"

namespace plugrad::codegen {
namespace {

// Whether two values are the same function, the one of range a and the other of range b, and of
// what else both are inside of. Reductions have loops of their own.
class SameFunction {
 public:
  SameFunction(const Graph& g, Id a, Id b) : g_(g), ranges_{{a, b}} {}

  bool operator()(Id x, Id y) {
    const Node &n = g_[x], &m = g_[y];
    if (n.op != m.op || n.dtype != m.dtype) return false;
    if (n.op == Op::Range) return same_range(x, y);
    const auto from = g_.sources(x), to = g_.sources(y);
    if (from.size() != to.size() || !same_arg(n, m, x, y)) return false;
    if (from.empty()) return x == y;
    if (visited_.contains({x, y})) return true;
    const std::map<Id, Id> before = ranges_;
    bool same = all_same(from, to);
    if (!same && from.size() == 2 && is_commutative(n.op)) {
      ranges_ = before;
      same = (*this)(from[0], to[1]) && (*this)(from[1], to[0]);
    }
    if (same) visited_.emplace(std::pair(x, y), true);
    return same;
  }

 private:
  bool same_arg(const Node& n, const Node& m, Id x, Id y) const {
    if (op_info(n.op).arg == ArgKind::List)
      return std::ranges::equal(g_.arg_list(x), g_.arg_list(y));
    return n.arg == m.arg;
  }
  bool all_same(std::span<const Id> from, std::span<const Id> to) {
    for (size_t i = 0; i < from.size(); ++i)
      if (!(*this)(from[i], to[i])) return false;
    return true;
  }
  bool same_range(Id x, Id y) {
    if (const auto known = ranges_.find(x); known != ranges_.end()) return known->second == y;
    const bool both_reduce = is_reduce_axis(range_kind(g_[x])) && is_reduce_axis(range_kind(g_[y]));
    if (x != y &&
        (!both_reduce || is_bounded(g_[x]) || is_bounded(g_[y]) || g_[x].src[0] != g_[y].src[0]))
      return false;
    ranges_.emplace(x, y);
    return true;
  }

  const Graph& g_;
  std::map<Id, Id> ranges_;  // of the one, of the other
  std::map<std::pair<Id, Id>, bool> visited_;
};

// What it takes to compute a value; of reductions inside it each iteration.
double work_of(const Graph& g, Id value) {
  double work = 0;
  Reachable reachable;
  OpenRanges open(g);
  for (Id id : reachable.from(g, std::span(&value, 1))) {
    const Op op = g[id].op;
    if (g[id].dtype == DType::Index || (open[id] & open[value]) != open[value]) continue;
    if (op == Op::Reduce) work += 64;
    if (is_alu(op))
      work += op == Op::Exp2 || op == Op::Log2 || op == Op::Sin ? 16
              : op == Op::FDiv || op == Op::Sqrt                ? 4
                                                                : 1;
  }
  return work;
}

std::vector<Id> twins_of(const Kernel& kernel, const std::vector<Id>& nodes, OpenRanges& open,
                         Id value, Id range) {
  const Graph& g = kernel.graph;
  std::vector<Id> out;
  for (Id other : nodes) {
    if (other == value || g[other].op != g[value].op || g[other].dtype != g[value].dtype) continue;
    for (Id axis : kernel.axes) {
      if (axis == range || range_size(g, axis) != range_size(g, range) || is_bounded(g[axis]))
        continue;
      if ((open[value] & ~open.bit(range)) != (open[other] & ~open.bit(axis)) ||
          !open.depends(other, axis))
        continue;
      if (SameFunction(g, range, axis)(value, other)) out.insert(out.end(), {other, axis});
    }
  }
  return out;
}

}  // namespace

Repeated find_repeated(const Kernel& kernel, size_t axis) {
  const Graph& g = kernel.graph;
  const Id range = kernel.axes[axis];
  Repeated out;
  if (range_kind(g[range]) != AxisKind::Reduce || is_bounded(g[range])) return out;
  OpenRanges open(g);
  Reachable reachable;
  const std::vector<Id> nodes = reachable.from(g, std::span(&kernel.sink, 1));
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    const Op op = g[*it].op;
    if (!open.depends(*it, range) || (!is_alu(op) && op != Op::Reduce)) continue;
    if (g[*it].dtype == DType::Index || !claims_storage(*kernel.caps, g[*it].dtype)) continue;
    const std::vector<Id> twins = twins_of(kernel, nodes, open, *it, range);
    if (twins.empty()) continue;
    out.values = {*it, range};
    out.values.insert(out.values.end(), twins.begin(), twins.end());
    out.work = work_of(g, *it);
    return out;
  }
  return out;
}

uint64_t bytes_to_keep(const Kernel& kernel, const Repeated& repeated, size_t place) {
  OpenRanges open(kernel.graph);
  uint64_t bytes = size_of(kernel.graph[repeated.values[0]].dtype);
  for (size_t i = 0; i < kernel.axes.size(); ++i)
    if (i >= place && open.depends(repeated.values[0], kernel.axes[i]))
      bytes *= static_cast<uint64_t>(range_size(kernel.graph, kernel.axes[i]));
  return bytes;
}

namespace {

// The loops inside `place` that the value varies over are dimensions of what is kept, outermost
// first.
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

// Where the kernel writes a result made of the kept value, element by element and after all else
// that reads it, the value waits in that place: the range along which it is stored there, or kNoId.
Id range_of_output(const Kernel& kernel, const Repeated& repeated) {
  const Graph& g = kernel.graph;
  if (g.sources(kernel.sink).size() != 1) return kNoId;
  const Id store = g.sources(kernel.sink)[0], target = g.sources(store)[0];
  if (has_strict_gate(g, store) || g[target].dtype != g[repeated.values[0]].dtype) return kNoId;
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

Id readable(Graph& g, Id param) {
  ParamInfo info = param_info(g, param);
  info.flags |= PGR_PARAM_READ;
  return make_param(g, g[param].dtype, info);
}

// An array, or the output, with the index of an element at given values of the dimensions.
struct Place {
  Id memory = kNoId;
  std::function<Id(std::span<const Id>)> index;
};

Place scratch_for(Kernel& kernel, const std::vector<Id>& dims, DType dtype) {
  Graph& g = kernel.graph;
  int64_t count = 1;
  for (Id r : dims) count *= range_size(g, r);
  const auto index = [&g, dims](std::span<const Id> at) {
    Id sum = g.index(0);
    for (size_t i = 0; i < dims.size(); ++i)
      sum = g.binary(Op::Add, g.binary(Op::Mul, sum, g.index(range_size(g, dims[i]))), at[i]);
    return sum;
  };
  return {make_array(g, dtype, {next_array(kernel), PGR_SPACE_PRIVATE, count}), index};
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

// The loops that the output is stored in and not filled in run inside those that it is filled in,
// one after the other.
void check_kept(const Kernel& kernel, const Optimisation& change) {
  const Graph& g = kernel.graph;
  OpenRanges open(g);
  for (Id store : g.sources(kernel.sink))
    for (Id filled : nodes_of(g, store, Op::Filled)) {
      if (g[filled_parts(g, filled).array].op != Op::Param) continue;
      bool inside = false;
      for (Id axis : kernel.axes) {
        const AxisKind kind = range_kind(g[axis]);
        if (!is_output_axis(kind) || !open.depends(store, axis)) continue;
        const bool fills = open.depends(filled, axis);
        require(fills ? !inside : kind == AxisKind::Loop,
                "[codegen] {}: rows wait in the output, which other rows would be stored to",
                to_string({change}));
        inside = inside || !fills;
      }
    }
}

void keep(Kernel& kernel, const Optimisation& change) {
  Graph& g = kernel.graph;
  const std::string text = to_string({change});
  check_private_place(kernel, change);
  const Repeated repeated = find_repeated(kernel, change.axis);
  require(!repeated.values.empty(), "[codegen] {}: nothing along the axis is computed again", text);
  const std::vector<Id> dims =
      dimensions(kernel, repeated, static_cast<size_t>(change.amount), text);
  const Id value = repeated.values[0], output = range_of_output(kernel, repeated);
  const DType dtype = g[value].dtype;
  const Place place =
      output == kNoId ? scratch_for(kernel, dims, dtype) : output_for(kernel, dims, output);
  std::vector<std::pair<Id, Id>> inner;
  std::vector<Id> closed;
  uint32_t number = new_axis(kernel);
  for (Id r : dims) {
    closed.push_back(make_range(g, range_size(g, r), number++, AxisKind::Loop));
    inner.emplace_back(r, closed.back());
  }
  std::ranges::sort(inner);
  const Id store = g.add(Op::Store, DType::Void,
                         {place.memory, place.index(closed), substitute(g, value, inner)});
  const Id filled = make_filled(g, {&store, 1}, closed);
  std::vector<std::pair<Id, Id>> map;
  for (size_t i = 0; i < repeated.values.size(); i += 2) {
    std::vector<Id> here = dims;
    here.back() = repeated.values[i + 1];
    map.emplace_back(repeated.values[i], g.add(Op::Load, dtype, {filled, place.index(here)}));
  }
  std::ranges::sort(map);
  replace(kernel, map);
  check_scratch(kernel, text);
}

}  // namespace plugrad::codegen
