// Every index and condition of the operand is a sum of factor * range. Two ranges whose factors are
// in proportion everywhere can only be told apart by the sum of both.
#include "codegen/transforms/tile_coordinates.h"

#include <algorithm>
#include <cstdlib>

#include "codegen/analysis/access.h"
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

// The integers that the operand is computed of: what indices, comparisons, divisions and casts
// take.
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

// The number by which `b` is to be multiplied to be `a`; 0 for none.
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

}  // namespace plugrad::codegen
