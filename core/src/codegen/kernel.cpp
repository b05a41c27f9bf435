// Builds, copies and describes kernels.
#include "codegen/kernel.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/log.h"
#include "codegen/analysis/access.h"
#include "codegen/analysis/tensor_core.h"
#include "ir/facts.h"
#include "rewrite/trace.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

// Output axes before reduce axes, each by axis number.
std::vector<Id> list_axes(const Graph& g, Id sink) {
  std::vector<Id> axes = nodes_of(g, sink, Op::Range);
  std::erase_if(axes, [&](Id r) { return is_element(g[r]); });
  std::ranges::sort(axes, {}, [&](Id r) {
    return std::pair(!is_output_axis(range_kind(g[r])), range_axis(g[r]));
  });
  return axes;
}

int64_t lowest_int(DType dtype) {
  if (is_unsigned(dtype)) return 0;
  const int bits = dtype == DType::Index ? 64 : static_cast<int>(size_of(dtype)) * 8;
  return std::numeric_limits<int64_t>::min() >> (64 - bits);
}

Color color_of(AxisKind kind) {
  switch (kind) {
    case AxisKind::Global:
      return Color::Blue;
    case AxisKind::Warp:
    case AxisKind::Local:
      return Color::Cyan;
    case AxisKind::Reduce:
      return Color::Red;
    case AxisKind::Upcast:
    case AxisKind::Vector:
      return Color::Yellow;
    case AxisKind::Unroll:
      return Color::Purple;
    case AxisKind::Group:
      return Color::Green;
    default:
      return Color::Plain;
  }
}

// The value that an indexed Reduce stores.
Id term_of(const Graph& g, Id reduce) {
  Id value = reduce_parts(g, reduce).values[0];
  while (g[value].op == Op::Cast) value = g[value].src[0];
  return g[value].op == Op::Where ? g[value].src[1] : value;
}

double loop_iterations(const Graph& g, OpenRanges& open, Id id) {
  double count = 1;
  for (Id r : open.members(open[id])) count *= static_cast<double>(range_size(g, r));
  return count;
}

}  // namespace

Id copy_into(Graph& to, const Graph& from, Id root) {
  Reachable reachable;
  const std::vector<Id>& nodes = reachable.from(from, std::span(&root, 1));
  std::vector<Id> copy(root + 1, kNoId);
  std::vector<Id> sources;
  for (Id id : nodes) {
    const Node& n = from[id];
    sources.clear();
    for (Id s : from.sources(n)) sources.push_back(copy[s]);
    const uint64_t arg = op_info(n.op).arg == ArgKind::List ? to.list(from.arg_list(id)) : n.arg;
    copy[id] = to.add(n.op, n.dtype, sources, arg);
  }
  return copy[root];
}

void compact(Kernel& kernel) {
  Graph fresh;
  kernel.sink = copy_into(fresh, kernel.graph, kernel.sink);
  kernel.graph = std::move(fresh);
  report_replaced_graph();
  kernel.axes = list_axes(kernel.graph, kernel.sink);
}

void replace(Kernel& kernel, std::span<const std::pair<Id, Id>> old_to_new) {
  kernel.sink = substitute(kernel.graph, kernel.sink, old_to_new);
  kernel.sink = Simplifier(kernel.graph, kernel.rules())(kernel.sink);
  compact(kernel);
}

Id replace_ranges(Graph& g, Id root, std::span<const RangeReplacement> replacements) {
  Reachable reachable;
  const std::vector<Id> nodes = reachable.from(g, std::span(&root, 1));
  std::vector<Id> now(root + 1, kNoId), sources;
  for (Id id : nodes) {
    const auto it = std::ranges::find(replacements, id, &RangeReplacement::range);
    if (it != replacements.end()) {
      now[id] = it->index;
      continue;
    }
    sources.clear();
    for (Id s : g.sources(id)) {
      const auto closed = g[id].op == Op::Reduce
                              ? std::ranges::find(replacements, s, &RangeReplacement::range)
                              : replacements.end();
      if (closed == replacements.end())
        sources.push_back(now[s]);
      else
        for (Id r : closed->ranges)
          if (std::ranges::find(sources, r) == sources.end()) sources.push_back(r);
    }
    now[id] = g.with_sources(id, sources);
    if (g[id].op == Op::Reduce && reduce_parts(g, now[id]).ranges.empty())
      now[id] = make_reduce(g, static_cast<Op>(g.arg_list(id)[0]), sources, {});
  }
  return now[root];
}

uint32_t new_axis(const Kernel& kernel) {
  uint32_t last = 0;
  for (Id axis : kernel.axes) last = std::max(last, range_axis(kernel.graph[axis]));
  return last + 1;
}

size_t axis_with_number(const Kernel& kernel, uint32_t number) {
  const auto it =
      std::ranges::find(kernel.axes, number, [&](Id r) { return range_axis(kernel.graph[r]); });
  return static_cast<size_t>(it - kernel.axes.begin());
}

ReduceParts reduce_parts(const Graph& g, Id reduce) {
  const auto sources = g.sources(reduce);
  size_t values = 0;
  while (values < sources.size() && g[sources[values]].op != Op::Range) ++values;
  return {static_cast<Op>(g.arg_list(reduce)[0]), sources.subspan(0, values),
          sources.subspan(values)};
}

bool is_indexed(const Graph& g, Id id) {
  return g[id].op == Op::Reduce && g.arg_list(id).size() > 1 && g.arg_list(id)[1] == kIndexed;
}

Id make_reduce(Graph& g, Op op, std::span<const Id> values, std::span<const Id> ranges) {
  const DType dtype = g[values[0]].dtype;
  std::vector<Id> sources(values.begin(), values.end());
  sources.insert(sources.end(), ranges.begin(), ranges.end());
  if (ranges.empty()) {
    Id sum = values[0];
    for (Id v : values.subspan(1)) sum = g.add(op, dtype, {sum, v});
    return sum;
  }
  return g.add(Op::Reduce, dtype, sources, g.list({static_cast<int64_t>(op)}));
}

Id reduce_identity(Graph& g, Op op, DType dtype) {
  if (op == Op::Add) return g.constant(dtype, int64_t{0});
  if (op == Op::Mul) return g.constant(dtype, int64_t{1});
  ensure(op == Op::Max, "[codegen] no reduction by {}", op_info(op).name);
  return is_float(dtype) ? g.constant(dtype, -std::numeric_limits<double>::infinity())
                         : g.constant(dtype, lowest_int(dtype));
}

Kernel part_of(const Kernel& kernel, Id store) {
  Kernel part;
  part.caps = kernel.caps;
  part.options = kernel.options;
  const Id copy = copy_into(part.graph, kernel.graph, store);
  part.sink = part.graph.add(Op::Sink, DType::Void, {copy});
  compact(part);
  return part;
}

Kernel copy_of(const Kernel& kernel) {
  Kernel copy;
  copy.caps = kernel.caps;
  copy.options = kernel.options;
  copy.param_count = kernel.param_count;
  copy.scalars = kernel.scalars;
  copy.applied = kernel.applied;
  copy.sink = copy_into(copy.graph, kernel.graph, kernel.sink);
  compact(copy);
  return copy;
}

double iterations_of(const Kernel& kernel) {
  double count = 1;
  for (Id axis : kernel.axes) count *= static_cast<double>(range_size(kernel.graph, axis));
  return count;
}

int64_t part_of_size(int64_t size, int64_t most) {
  for (int64_t part = most; part > most / 2; --part)
    if (size % part == 0) return part;
  return most;
}

size_t outermost_loop(const Kernel& kernel, const std::function<bool(uint32_t)>& allows) {
  OpenRanges open(kernel.graph);
  RangeSet outputs = 0;  // without loops that fill a local buffer
  for (Id store : kernel.graph.sources(kernel.sink)) outputs |= open[store];
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis) {
    const Id range = kernel.axes[axis];
    if (kind_of(kernel, axis) == AxisKind::Loop && (open.bit(range) & outputs) != 0 &&
        !is_bounded(kernel.graph[range]) && (!allows || allows(range_axis(kernel.graph[range]))))
      return axis;
  }
  return kernel.axes.size();
}

std::string kernel_name(const Kernel& kernel, bool in_color) {
  const Graph& g = kernel.graph;
  const bool reduces =
      !nodes_of(g, kernel.sink, Op::Reduce).empty() ||
      std::ranges::any_of(kernel.axes, [&](Id r) { return range_kind(g[r]) == AxisKind::Reduce; });
  constexpr size_t kMostShown = 16;
  std::string name = reduces ? "r" : "E";
  for (Id r : std::span(kernel.axes).first(std::min(kernel.axes.size(), kMostShown))) {
    const std::string size = std::to_string(range_size(g, r));
    name += '_';
    name += in_color ? colored(size, color_of(range_kind(g[r]))) : size;
  }
  if (kernel.axes.size() > kMostShown)
    name += fmt::format("_and_{}", kernel.axes.size() - kMostShown);
  return name;
}

Estimates estimate(Kernel& kernel) {
  const Graph& g = kernel.graph;
  OpenRanges open(g);
  Estimates out;
  std::vector<std::pair<Id, double>> touched;  // param, bytes
  Reachable reachable;
  for (Id id : reachable.from(g, std::span(&kernel.sink, 1))) {
    const Node& n = g[id];
    const double times = loop_iterations(g, open, id);
    if (n.op == Op::Load || n.op == Op::Store) {
      const Id param = g.sources(n)[0];
      const double size = size_of(g[param].dtype);
      const double most = static_cast<double>(param_info(g, param).elem_count) * size;
      auto it = std::ranges::find(touched, param, &std::pair<Id, double>::first);
      if (it == touched.end()) it = touched.insert(it, {param, 0.0});
      it->second = std::min(most, it->second + times * size);
    } else if (n.op == Op::Reduce && is_float(n.dtype)) {
      double inner = times;
      for (Id r : reduce_parts(g, id).ranges) inner *= static_cast<double>(range_size(g, r));
      if (is_indexed(g, id)) inner = loop_iterations(g, open, term_of(g, id));
      out.flops += static_cast<int64_t>(inner);
    } else if (is_alu(n.op) && is_float(n.dtype) && n.op != Op::Cast && n.op != Op::Where) {
      out.flops += static_cast<int64_t>(times);
    }
  }
  for (const auto& [param, bytes] : touched) out.bytes += static_cast<int64_t>(bytes);
  return out;
}

}  // namespace plugrad::codegen
