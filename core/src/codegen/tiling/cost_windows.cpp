// Overlapping windows: copies of an output loop and of a loop over taps, both expanded, share the
// loads with equal `y + tap`.
#include <algorithm>
#include <bit>
#include <cmath>

#include "codegen/analysis/predication.h"
#include "codegen/tiling/cost_model.h"
#include "codegen/transforms/transforms.h"

namespace plugrad::codegen {

void CostModel::add_windows(Operation& operation, Id index) {
  const auto step = [&](size_t a) {
    return std::abs(stride_of(kernel_.graph, index, kernel_.axes[a]).value_or(0));
  };
  for (size_t output = 0; output < sizes_.size(); ++output)
    for (size_t tap = 0; tap < sizes_.size(); ++tap) {
      if (is_reduce(output) || !is_reduce(tap) || step(output) == 0 || step(tap) == 0) continue;
      const int64_t least = std::min(step(output), step(tap));
      const auto meets = [&](size_t one, size_t other) {
        return step(one) * (sizes_[one] - 1) >= step(other) && step(other) % least == 0;
      };
      if (meets(tap, output) && meets(output, tap))
        operation.windows.push_back({output, tap, step(output) / least, step(tap) / least});
    }
}

// Distinct elements that the tile's copies of a window read; 0 unless both loops are expanded.
double CostModel::elements_of_window(const Window& window, const Tile& tile) {
  const int64_t outputs = tile.amounts[window.output], taps = tile.amounts[window.tap];
  if (outputs == 1 || taps == 1 || window.output == tile.vector_axis ||
      window.tap == tile.vector_axis)
    return 0;
  // One of the steps is 1, so the elements form runs of that loop's length; they overlap if the
  // other step is shorter than a run.
  const bool taps_run = window.tap_step == 1;
  const int64_t run = taps_run ? taps : outputs, others = taps_run ? outputs : taps;
  const int64_t step = taps_run ? window.output_step : window.tap_step;
  return static_cast<double>((others - 1) * std::min(step, run) + run);
}

// Loads per copy, relative to one load for each.
double CostModel::share_of_loads(const Operation& operation, const Tile& tile) const {
  double share = 1;
  for (const Window& window : operation.windows)
    if (const double places = elements_of_window(window, tile); places > 0)
      share *= places / static_cast<double>(tile.amounts[window.output] * tile.amounts[window.tap]);
  return share;
}

// Rows of taps that adjacent windows span.
int64_t CostModel::rows_of_windows(const Operation& operation, size_t axis, int64_t windows) {
  int64_t step = 1;
  for (const Window& window : operation.windows)
    if (window.output == axis)
      step = std::max(step, window.output_step / std::max<int64_t>(1, window.tap_step));
  return (windows - 1) * step + 1;
}

double CostModel::shared_loads(const Operation& operation, const Tile& tile) const {
  double most = 0;
  for (const Window& window : operation.windows)
    most = std::max(most, elements_of_window(window, tile));
  return most;
}

// The number of loop ends at which the load is gated; nothing if it may be gated anywhere.
std::optional<int64_t> CostModel::borders_of(Id load, Id axis) {
  const Graph& g = kernel_.graph;
  int64_t count = 0;
  if (g.sources(load).size() < 3) return count;
  for (Id clause : conjuncts(g, g.sources(load)[2])) {
    if (!open_.depends(clause, axis)) continue;
    const Node& n = g[clause];
    if (n.op != Op::CmpLt || g[n.src[0]].dtype != DType::Index) return std::nullopt;
    if (stride_of(g, n.src[0], axis) == std::nullopt ||
        stride_of(g, n.src[1], axis) == std::nullopt)
      return std::nullopt;
    ++count;
  }
  return count;
}

// The share of the vectors along the axis that are gated.
double CostModel::border_share(const Operation& operation, const Tile& tile, size_t axis) const {
  if (operation.borders[axis] > 0 && !leaves_no_sum(tile)) return 1;
  const int64_t size = sizes_[axis] * (tile.is_part(axis) ? sizes_[tile.outer[axis]] : 1);
  return std::min(
      1.0, static_cast<double>(operation.borders[axis] * lanes_) / static_cast<double>(size));
}

size_t CostModel::outer_part(size_t axis) const {
  const auto goes_on = [&](size_t outer) {
    return outer != axis && is_reduce(outer) == is_reduce(axis) &&
           std::ranges::all_of(operations_, [&](const Operation& operation) {
             if (operation.kind != Operation::Kind::Load &&
                 operation.kind != Operation::Kind::Store)
               return true;
             const int64_t inner = operation.stride[axis], step = operation.stride[outer];
             if (inner == kIrregular || inner == kNear) return step == inner;
             return step == inner * sizes_[axis] || (step == kNear && inner != 0);
           });
  };
  for (size_t outer = 0; outer < sizes_.size(); ++outer)
    if (goes_on(outer)) return outer;
  return SIZE_MAX;
}

bool CostModel::is_tap(size_t axis) const {
  return is_reduce(axis) && may_split(kernel_, axis) &&
         std::ranges::any_of(operations_, [&](const Operation& operation) {
           return std::ranges::find(operation.windows, axis, &Window::tap) !=
                  operation.windows.end();
         });
}

std::vector<size_t> CostModel::taps(const Tile& tile) const {
  if (works_in_groups(*kernel_.caps)) return {};
  std::vector<size_t> axes;
  for (size_t a = 0; a < sizes_.size(); ++a) {
    if (!is_reduce(a) || a == tile.vector_axis) continue;
    if (!is_tap(a)) return {};
    axes.push_back(a);
  }
  return axes;
}

size_t CostModel::last_tap(const Tile& tile) const {
  if (works_in_groups(*kernel_.caps)) return SIZE_MAX;
  for (size_t a = sizes_.size(); a-- > 0;)
    if (is_reduce(a)) return a != tile.vector_axis && is_tap(a) ? a : SIZE_MAX;
  return SIZE_MAX;
}

bool CostModel::leaves_no_sum(const Tile& tile) const {
  for (size_t a = 0; a < sizes_.size(); ++a)
    if (is_reduce(a) && (tile.amounts[a] < sizes_[a] || a == tile.vector_axis)) return false;
  return has_reduce_;
}

double CostModel::sum_code(const Tile& tile) const {
  double sum = 0;
  for (const Operation& operation : operations_)
    if (!operation.is_fused && !operation.is_condition)
      sum += copies(operation, tile) * share_of_loads(operation, tile);
  return sum;
}

int64_t CostModel::pieces(int64_t amount) const {
  return amount / lanes_ + std::popcount(static_cast<uint64_t>(amount % lanes_));
}

// Two pieces may overlap if the values are sums (pieces_of in passes/expand.cpp).
int64_t CostModel::pieces(size_t axis, int64_t amount) const {
  const int64_t whole = amount / lanes_, rest = amount % lanes_;
  if (is_reduce(axis) || !repeats_[axis] || rest == 0) return pieces(amount);
  return whole + (whole > 0 || std::has_single_bit(static_cast<uint64_t>(rest)) ? 1 : 2);
}

// The vectors for an amount or for its remainder, whichever is more.
int64_t CostModel::widest(size_t axis, int64_t amount) const {
  return is_reduce(axis) ? pieces(amount)
                         : std::max(pieces(axis, amount), pieces(axis, sizes_[axis] % amount));
}

int64_t CostModel::vectors_of_axis(size_t axis, int64_t amount) const {
  const int64_t rest = sizes_[axis] % amount;
  return sizes_[axis] / amount * pieces(axis, amount) + pieces(axis, rest);
}

}  // namespace plugrad::codegen
