// The first step of the heuristic for CPUs: the axis of lanes.
#include <algorithm>
#include <limits>

#include "codegen/search/heuristic.h"
#include "codegen/transforms/transforms.h"

namespace plugrad::codegen {
namespace {

// Cycles of a launch that a frugal schedule gives for a statement less: compiling it takes 0.1 ms
// (docs/decisions/schedules-are-frugal-first.md), and such a kernel is launched some hundred times.
constexpr double kStatementCycles = 3000;

// Amounts of the vector axis: the whole axis if short, otherwise a few vectors.
std::vector<int64_t> vector_amounts(int64_t size, int64_t lanes) {
  std::vector<int64_t> amounts;
  for (int64_t n = 1; n <= 4; ++n)
    if (2 * n * lanes <= size) amounts.push_back(n * lanes);
  if (size <= 4 * lanes) amounts.push_back(size);
  return amounts;
}

// Of one vector at most, or the whole axis if it is two at most; first without a rest.
std::vector<int64_t> frugal_amounts(int64_t size, int64_t lanes) {
  std::vector<int64_t> amounts;
  for (int64_t amount = lanes; amount > 1; amount /= 2)
    if (size % amount == 0 || (amount == lanes && size > lanes)) amounts.push_back(amount);
  if (size <= 2 * lanes) amounts.push_back(size);
  return amounts;
}

// If stored lanes are strided and nothing is summed, upcasts as many consecutive elements.
void add_neighbours(const Kernel& kernel, const CostModel& model, Tile& tile) {
  const bool is_alone = model.has_reduce() || kernel.options.frugal;
  const size_t beside = is_alone ? SIZE_MAX : model.axis_beside_lanes(tile);
  if (beside == SIZE_MAX || !may_split(kernel, beside) || kind_of(kernel, beside) != AxisKind::Loop)
    return;
  tile.amounts[beside] = std::min(model.lanes(), size_of_axis(kernel, beside));
}

// The cost of the tile's code, in a frugal schedule.
double cost_of_code(const Kernel& kernel, const CostModel& model, const Tile& tile) {
  return kernel.options.frugal ? statements_of(kernel, model, tile) * kStatementCycles : 0;
}

}  // namespace

double statements_of(const Kernel& kernel, const CostModel& model, const Tile& tile) {
  double statements = model.whole_code(tile);
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (const int64_t rest = size_of_axis(kernel, axis) % tile.amounts[axis]; rest != 0) {
      Tile of_rest = tile;
      of_rest.amounts[axis] = rest;
      statements += model.whole_code(of_rest);
    }
  return statements;
}

std::vector<int64_t> amounts_of(const Kernel& kernel, const CostModel& model, size_t vector_axis) {
  const int64_t size = size_of_axis(kernel, vector_axis), threads = kernel.caps->threads;
  // Vectors of a sum are its partial sums, of which a frugal schedule has as many as any other.
  const bool is_frugal = kernel.options.frugal && kind_of(kernel, vector_axis) == AxisKind::Loop;
  std::vector<int64_t> amounts =
      is_frugal ? frugal_amounts(size, model.lanes()) : vector_amounts(size, model.lanes());
  int64_t others = 1;
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (axis != vector_axis && kind_of(kernel, axis) == AxisKind::Loop)
      others *= size_of_axis(kernel, axis);
  if (others >= threads || model.iterations() < kernel.machine().parallel_iterations() ||
      kind_of(kernel, vector_axis) != AxisKind::Loop)
    return amounts;
  const auto starves = [&](int64_t amount) { return size / amount * others < threads; };
  if (!std::ranges::all_of(amounts, starves)) std::erase_if(amounts, starves);
  return amounts;
}

bool is_worth_expanding(const Kernel& kernel, const CostModel& model, size_t axis) {
  const bool by_index = std::ranges::any_of(
      kernel.axes, [&](Id r) { return range_kind(kernel.graph[r]) == AxisKind::Block; });
  return !by_index || model.stores_neighbours(axis);
}

std::vector<LaneChoice> lanes_of(const Kernel& kernel, const CostModel& model) {
  const Tile scalar{std::vector<int64_t>(kernel.axes.size(), 1), SIZE_MAX};
  // The axis decides the order of a sum's terms, which is the same in frugal schedules.
  const bool is_sum = model.has_reduce();
  std::vector<LaneChoice> found = {
      {scalar, model.cost(scalar) + (is_sum ? 0 : cost_of_code(kernel, model, scalar))}};
  constexpr double kNone = std::numeric_limits<double>::infinity();
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis) {
    if (!may_split(kernel, axis) || !is_worth_expanding(kernel, model, axis)) continue;
    const bool is_reduced = kind_of(kernel, axis) != AxisKind::Loop;
    LaneChoice best{scalar, kNone};
    double least = kNone;
    for (int64_t amount : amounts_of(kernel, model, axis)) {
      Tile tile = scalar;
      tile.vector_axis = axis;
      tile.amounts[axis] = amount;
      add_neighbours(kernel, model, tile);
      const double cycles = model.cost(tile);
      const double cost = cycles + (is_reduced ? 0 : cost_of_code(kernel, model, tile));
      if (cost >= best.cost * 0.98 || is_too_much_code(model, tile)) continue;
      best = {tile, cost};
      least = std::min(least, cycles);
    }
    if (is_sum) best.cost = least;
    if (best.cost < kNone) found.push_back(std::move(best));
  }
  return found;
}

}  // namespace plugrad::codegen
