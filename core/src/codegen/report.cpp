#include "codegen/report.h"

#include <algorithm>

#include "base/log.h"
#include "codegen/analysis/access.h"
#include "ir/facts.h"

namespace plugrad::codegen {
namespace {

// semantics.md's colours.
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

// What a marked Reduce stores by an index.
Id term_of(const Graph& g, Id reduce) {
  Id value = reduce_parts(g, reduce).values[0];
  while (g[value].op == Op::Cast) value = g[value].src[0];
  return g[value].op == Op::Where ? g[value].src[1] : value;
}

double iterations_of(const Graph& g, OpenRanges& open, Id id) {
  double count = 1;
  for (Id r : open.members(open[id])) count *= static_cast<double>(range_size(g, r));
  return count;
}

}  // namespace

std::string kernel_name(const Kernel& kernel, bool in_color) {
  const Graph& g = kernel.graph;
  const bool reduces =
      !nodes_of(g, kernel.sink, Op::Reduce).empty() ||
      std::ranges::any_of(kernel.axes, [&](Id r) { return range_kind(g[r]) == AxisKind::Reduce; });
  std::string name = reduces ? "r" : "E";
  for (Id r : kernel.axes) {
    const std::string size = std::to_string(range_size(g, r));
    name += '_';
    name += in_color ? colored(size, color_of(range_kind(g[r]))) : size;
  }
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
    const double times = iterations_of(g, open, id);
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
      if (is_indexed(g, id)) inner = iterations_of(g, open, term_of(g, id));
      out.flops += static_cast<int64_t>(inner);
    } else if (is_alu(n.op) && is_float(n.dtype) && n.op != Op::Cast && n.op != Op::Where) {
      out.flops += static_cast<int64_t>(times);
    }
  }
  for (const auto& [param, bytes] : touched) out.bytes += static_cast<int64_t>(bytes);
  return out;
}

}  // namespace plugrad::codegen
