// All indices and conditions of the operand are sums of factor * range. Ranges with proportional
// factors everywhere can be told apart by their sum only, so they form one coordinate.
#include "codegen/transforms/tile_layout.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "codegen/analysis/access.h"
#include "codegen/analysis/tensor_core.h"
#include "ir/facts.h"
#include "symbolic/linear.h"

namespace plugrad::codegen {
namespace {

bool is_sum(const Graph& g, Id id) {
  const Node& n = g[id];
  if (n.dtype != DType::Index) return false;
  return n.op == Op::Add || n.op == Op::Sub || n.op == Op::Neg ||
         (n.op == Op::Mul && is_const(g, n.src[1]));
}

// The integers that the operand depends on: the arguments of indices, comparisons, divisions and
// casts.
std::vector<Id> leaves_of(const Graph& g, Id operand) {
  Reachable reachable;
  std::vector<Id> leaves;
  for (Id id : reachable.from(g, std::span(&operand, 1))) {
    if (is_sum(g, id) || g[id].op == Op::Range) continue;
    for (Id s : g.sources(id))
      if (g[s].dtype == DType::Index && !is_const(g, s)) leaves.push_back(s);
  }
  std::ranges::sort(leaves);
  leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
  return leaves;
}

struct Direction {
  Id range;
  int64_t size;
  std::vector<int64_t> factors;  // by leaf
  int64_t length() const {
    int64_t sum = 0;
    for (int64_t f : factors) sum += std::abs(f);
    return sum;
  }
};

// The factor by which `b` is `a`; 0 for none.
int64_t scale_of(const Direction& a, const Direction& b) {
  int64_t scale = 0;
  for (size_t i = 0; i < a.factors.size(); ++i) {
    const int64_t x = a.factors[i], y = b.factors[i];
    if (y == 0 && x == 0) continue;
    if (y == 0 || x % y != 0 || (scale != 0 && x / y != scale)) return 0;
    scale = x / y;
    if (scale == 0) return 0;
  }
  return scale;
}

struct Banks {
  int64_t count, word_bytes;
};

// Defaults where the device reports no banks: the values of most devices.
Banks banks_of(const pgr_device_caps& caps) {
  if (caps.local_banks == 0) return {32, 4};
  return {caps.local_banks, std::max(caps.local_bank_bytes, 1u)};
}

constexpr int64_t kMostSteps = 8;  // steps of padding that are tried; chosen, not measured

// The product of tiles that has the operand; kNoId for none.
Id product_of(const Kernel& kernel, Id operand) {
  for (Id wmma : nodes_of(kernel.graph, kernel.sink, Op::Wmma))
    if (is_of_tiles(kernel.graph, wmma) && depends_on(kernel.graph, wmma, operand)) return wmma;
  return kNoId;
}

// The position of a work-item along the axis of the group.
int64_t place_on_axis(const std::vector<WorkItemAxis>& axes, size_t axis, uint32_t item) {
  int64_t number = item;
  for (size_t i = 0; i < axis; ++i) number /= axes[i].size;
  return number % axes[axis].size;
}

// Serialised words over all accesses of a subgroup: its bank conflicts.
int64_t bank_conflicts(const Banks& memory, std::span<const Coordinate> coordinates,
                       const AccessPattern& readers, int64_t row, int64_t element_bytes) {
  int64_t conflicts = 0;
  for (uint32_t access = 0; access < readers.accesses; ++access) {
    std::vector<std::set<int64_t>> banks(static_cast<size_t>(memory.count));
    for (uint32_t item = 0; item < readers.items; ++item) {
      int64_t place = 0;
      for (size_t i = 0; i < coordinates.size(); ++i)
        for (const auto& [range, scale] : coordinates[i].parts)
          place += readers.value(range, item, access) * scale * stride_in_rows(coordinates, row, i);
      const int64_t word = place * element_bytes / memory.word_bytes;
      banks[static_cast<size_t>((word % memory.count + memory.count) % memory.count)].insert(word);
    }
    size_t most = 0;
    for (const auto& words : banks) most = std::max(most, words.size());
    conflicts += static_cast<int64_t>(most);
  }
  return conflicts;
}

}  // namespace

std::vector<Coordinate> tile_coordinates(const Kernel& kernel, Id operand, uint32_t slot,
                                         const std::vector<Id>& ranges, bool joins_neighbours) {
  const Graph& g = kernel.graph;
  const std::vector<Id> leaves = leaves_of(g, operand);
  std::vector<Direction> directions;
  for (Id range : ranges) directions.push_back({range, range_size(g, range), {}});
  bool sums = true;
  for (Id leaf : leaves) {
    const auto sum = linear_of(g, leaf);
    sums &= sum.has_value();
    for (Direction& d : directions) d.factors.push_back(sum ? sum->factor_of(d.range) : 1);
  }
  std::ranges::stable_sort(directions, {}, &Direction::length);
  std::vector<Coordinate> out;
  std::vector<bool> done(directions.size());
  for (size_t i = 0; i < directions.size(); ++i) {
    if (done[i]) continue;
    const Direction& base = directions[i];
    Coordinate c{{{base.range, 1}}, base.range, 0, base.size, false};
    for (size_t j = i + 1; j < directions.size() && sums; ++j) {
      const int64_t scale = done[j] ? 0 : scale_of(directions[j], base);
      if (scale == 0 || std::abs(scale) >= c.extent + joins_neighbours) continue;
      done[j] = true;
      const int64_t steps = std::abs(scale) * (directions[j].size - 1);
      c.parts.emplace_back(directions[j].range, scale);
      c.extent += steps;
      if (scale < 0) c.offset += steps;
    }
    for (Id load : nodes_of(g, operand, Op::Load))
      if (g[g.sources(load)[0]].op == Op::Param && param_info(g, g.sources(load)[0]).slot == slot)
        c.is_consecutive |= stride_of(g, g.sources(load)[1], base.range) == 1;
    std::ranges::stable_sort(
        c.parts, {}, [&](const auto& part) { return std::ranges::find(kernel.axes, part.first); });
    out.push_back(std::move(c));
  }
  return out;
}

Id index_in_copy(Graph& g, std::span<const Coordinate> coordinates,
                 const std::function<int64_t(size_t)>& stride) {
  Id index = g.index(0);
  for (size_t i = 0; i < coordinates.size(); ++i) {
    Id value = g.index(coordinates[i].offset);
    for (const auto& [range, scale] : coordinates[i].parts)
      value = g.binary(Op::Add, value, g.binary(Op::Mul, range, g.index(scale)));
    index = g.binary(Op::Add, index, g.binary(Op::Mul, value, g.index(stride(i))));
  }
  return index;
}

AccessPattern access_pattern(const Kernel& kernel, const std::vector<WorkItemAxis>& axes,
                             Id operand) {
  AccessPattern readers;
  int64_t items = 1;
  for (const WorkItemAxis& axis : axes) items *= axis.size;
  readers.items = static_cast<uint32_t>(std::min<int64_t>(items, kernel.caps->subgroup_size));
  const auto of_item = [axes](Id range, uint32_t item) -> int64_t {
    for (size_t i = 0; i < axes.size(); ++i)
      if (std::ranges::find(axes[i].ranges, range) != axes[i].ranges.end())
        return place_on_axis(axes, i, item);
    return 0;
  };
  const Id wmma = product_of(kernel, operand);
  if (wmma == kNoId) {
    readers.value = [of_item](Id range, uint32_t item, uint32_t) { return of_item(range, item); };
    return readers;
  }
  const auto core = find_tensor_core(*kernel.caps, static_cast<uint32_t>(kernel.graph[wmma].arg));
  const TileProduct parts = tile_product(kernel.graph, wmma);
  const bool is_a = depends_on(kernel.graph, operand, parts.row);
  readers.accesses = is_a ? core->lanes_a : core->lanes_b;
  readers.value = [=](Id range, uint32_t item, uint32_t lane) -> int64_t {
    const auto bits = is_a ? core->layout.a : core->layout.b;
    const auto in_team = static_cast<uint32_t>(item % core->items);
    if (range == parts.row) return coordinate_of(bits, PGR_LANE_AXIS_M, in_team, lane);
    if (range == parts.column) return coordinate_of(bits, PGR_LANE_AXIS_N, in_team, lane);
    if (range == parts.k) return coordinate_of(bits, PGR_LANE_AXIS_K, in_team, lane);
    return of_item(range, item);
  };
  return readers;
}

int64_t stride_in_rows(std::span<const Coordinate> coordinates, int64_t row, size_t coordinate) {
  if (coordinate + 1 == coordinates.size()) return 1;
  int64_t stride = row;
  for (size_t i = coordinate + 2; i < coordinates.size(); ++i) stride *= coordinates[i - 1].extent;
  return stride;
}

int64_t padded_row(const pgr_device_caps& caps, std::span<const Coordinate> coordinates,
                   const AccessPattern& readers, DType dtype, int64_t width) {
  const int64_t bytes = size_of(dtype), row = coordinates.back().extent;
  const Banks banks = banks_of(caps);
  const int64_t step = std::max({width, banks.word_bytes / bytes, int64_t{1}});
  int64_t best = row, least = bank_conflicts(banks, coordinates, readers, row, bytes);
  for (int64_t i = 1; i <= kMostSteps && coordinates.size() > 1; ++i) {
    const int64_t padded = (row + step - 1) / step * step + (i - (row % step != 0)) * step;
    const int64_t conflicts = bank_conflicts(banks, coordinates, readers, padded, bytes);
    if (conflicts >= least) continue;
    best = padded;
    least = conflicts;
  }
  return best;
}

}  // namespace plugrad::codegen
