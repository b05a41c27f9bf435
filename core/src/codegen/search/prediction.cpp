#include "codegen/search/prediction.h"

#include <algorithm>
#include <limits>
#include <set>

#include "codegen/access.h"
#include "codegen/search/heuristic.h"
#include "codegen/search/rows.h"
#include "codegen/search/tile_search.h"
#include "uop/scratch.h"

namespace plugrad::codegen {
namespace {

// Of an instruction: a list from outside may ask for any number.
constexpr double kMostCopies = 1024;

bool is_expanded(AxisKind kind) {
  return kind == AxisKind::Upcast || kind == AxisKind::Unroll || kind == AxisKind::Vector;
}

// How the axes of a kernel are expanded, by their numbers.
struct Expansion {
  std::set<uint32_t> expanded, lanes;
};

// The axes as they were before the changes; what the changes made of them.
Expansion restore_axes(Kernel& part) {
  Expansion out;
  std::set<Id> closed;
  for (Id reduce : nodes_of(part.graph, part.sink, Op::Reduce))
    for (Id range : reduce_parts(part.graph, reduce).ranges) closed.insert(range);
  std::vector<std::pair<Id, Id>> plain;
  for (Id axis : part.axes) {
    const AxisKind kind = range_kind(part.graph[axis]);
    const uint32_t number = range_axis(part.graph[axis]);
    if (is_expanded(kind)) out.expanded.insert(number);
    if (kind == AxisKind::Vector) out.lanes.insert(number);
    const AxisKind before = closed.contains(axis) ? AxisKind::Reduce : AxisKind::Loop;
    const Id range = make_range(part.graph, range_size(part.graph, axis), number, before);
    if (range != axis) plain.emplace_back(axis, range);
  }
  replace(part, plain);
  return out;
}

// Copies become parameters, so that the kernel reads them without making them. Returns what it
// takes to make them.
double without_copies(Kernel& part) {
  constexpr double kCopyCost = 1.0 / 8;  // of an element; most are copied in vectors
  Graph& g = part.graph;
  OpenRanges open(g);
  double cost = 0;
  std::vector<std::pair<Id, Id>> params;
  for (Id filled : nodes_of(g, part.sink, Op::Filled)) {
    const Id array = filled_parts(g, filled).array;
    const int64_t count = g[array].op == Op::Array ? array_info(g, array).elem_count
                                                   : param_info(g, array).elem_count;
    double turns = 1;
    for (Id range : open.members(open[filled])) turns *= static_cast<double>(range_size(g, range));
    cost += turns * static_cast<double>(count) * kCopyCost;
    const auto slot = static_cast<uint32_t>(part.param_count + 1024 + params.size());
    params.emplace_back(filled, make_param(g, g[filled].dtype, {slot, count, PGR_PARAM_READ}));
  }
  replace(part, params);
  return cost;
}

// One nest of loops, that runs `times`.
void add_nest(Kernel& nest, const Expansion& expansion, double times, Prediction& out) {
  const double copies = without_copies(nest);
  const TileModel model(nest);
  Tile tile;
  for (size_t axis = 0; axis < nest.axes.size(); ++axis) {
    const uint32_t number = range_axis(nest.graph[nest.axes[axis]]);
    tile.amounts.push_back(expansion.expanded.contains(number) ? size_of_axis(nest, axis) : 1);
    if (expansion.lanes.contains(number)) tile.vector_axis = axis;
  }
  TileCycles now = model.cycles(tile);
  out.is_possible &= model.code_size(tile) <= kMostCopies && model.fits_registers(tile);
  now.packing += copies;
  now.all += copies;
  out.cycles.add(now, times);
  out.registers = std::max(out.registers, model.registers(tile));
}

// A store's nest, or where it reduces rows and runs along them again, each of its nests in turn.
void add_store(const Kernel& kernel, Id store, Prediction& out) {
  Kernel part = part_of(kernel, store);
  const Expansion expansion = restore_axes(part);
  RowParts rows = row_parts(part, expansion.expanded);
  if (rows.parts.empty()) return add_nest(part, expansion, 1, out);
  double times = 1;
  for (Id axis : part.axes)
    if (rows.is_row_axis(range_axis(part.graph[axis])))
      times *= static_cast<double>(range_size(part.graph, axis));
  for (Kernel& nest : rows.parts) add_nest(nest, expansion, times, out);
}

// Work-items that the launch has.
double items_of(const Kernel& kernel) {
  double items = 1;
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis) {
    const AxisKind kind = kind_of(kernel, axis);
    if (kind == AxisKind::Global || kind == AxisKind::Local || kind == AxisKind::Group)
      items *= static_cast<double>(size_of_axis(kernel, axis));
  }
  return items;
}

}  // namespace

// The nearest cache that holds all bytes has them, as between two launches of a replay.
double Prediction::moving(const cost::Machine& machine, double threads) const {
  const auto from = [&](const cost::Level& level) {
    return bytes /
           (level.one + (level.all - level.one) *
                            (machine.threads > 1 ? (threads - 1) / (machine.threads - 1) : 0));
  };
  for (const cost::Level& level : machine.levels)
    if (bytes <= level.bytes * threads) return from(level);
  return from(machine.memory());
}

double Prediction::seconds(const cost::Machine& machine, double threads) const {
  const double used = std::min(threads, busy);
  const double waking = used > 1 ? machine.wake_cycles : 0;
  return (std::max(cycles.all / used, moving(machine, used)) + waking) / machine.cycles_a_second;
}

Prediction predict(const Kernel& kernel, int64_t bytes) {
  Prediction out;
  out.bytes = static_cast<double>(bytes);
  for (Id store : kernel.graph.sources(kernel.sink)) add_store(kernel, store, out);
  const double cores = std::max(1u, kernel.caps->threads);
  const double enough =
      cores * (works_in_groups(*kernel.caps) ? 8.0 * kernel.caps->subgroup_size : 1.0);
  out.idle = std::max(1.0, enough / items_of(kernel));
  out.busy = cores / out.idle;
  return out;
}

}  // namespace plugrad::codegen
