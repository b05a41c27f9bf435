#include "codegen/search/tile_search.h"

#include <algorithm>

#include "codegen/search/changes.h"
#include "codegen/search/heuristic.h"

namespace plugrad::codegen {
namespace {

constexpr int64_t kUpcasts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

constexpr double kMostCopies = 32;  // of one instruction, by unrolling
constexpr double kMostUnrolled =
    256;  // of all: more hide no latency, but their values do not fit the registers
constexpr double kMostCode = 160;  // copies of one instruction, in a loop over sums
// Instructions of sums without a loop: three such bodies, the interior and two borders, are what a
// cache of decoded instructions holds (1,536 of them on Skylake, Intel's optimisation manual 2.5).
constexpr double kMostStraight = 512;

// Larger odd amounts are for short axes as a whole.
bool is_usual(int64_t amount) {
  return amount <= 8 || amount % 2 == 0;
}

bool has_useful_divisor(int64_t size) {
  return std::ranges::any_of(kUpcasts,
                             [&](int64_t n) { return n >= 4 && is_usual(n) && size % n == 0; });
}

// An upcast that leaves a rest pays for it with a second copy of the kernel: only for axes that no
// useful amount divides, or where it is little of all.
bool fits(const Kernel& kernel, int64_t size, int64_t amount, bool rests) {
  if (size % amount == 0) return size == amount || is_usual(amount);
  if (!is_usual(amount)) return false;
  if (size >= 16 * amount && size % 4 != 0 && size % 6 != 0) return true;
  if (works_in_groups(*kernel.caps)) return false;
  return size >= 2 * amount || !has_useful_divisor(size) || (rests && size >= 64 * amount);
}

}  // namespace

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
  RangeSet outputs = 0;  // not those that fill an array
  for (Id store : kernel.graph.sources(kernel.sink)) outputs |= open[store];
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis) {
    const Id range = kernel.axes[axis];
    if (kind_of(kernel, axis) == AxisKind::Loop && (open.bit(range) & outputs) != 0 &&
        !is_bounded(kernel.graph[range]) && (!allows || allows(range_axis(kernel.graph[range]))))
      return axis;
  }
  return kernel.axes.size();
}

std::vector<size_t> tile_axes(const Kernel& kernel, const TileModel& model, const Tile& tile) {
  std::vector<size_t> axes;
  if (!model.has_reduce()) return axes;
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (axis != tile.vector_axis && kind_of(kernel, axis) == AxisKind::Loop &&
        may_split(kernel, axis) && model.reuses(axis))
      axes.push_back(axis);
  std::ranges::stable_sort(axes, std::greater{}, [&](size_t axis) {
    return std::min<int64_t>(size_of_axis(kernel, axis), 16);
  });
  if (axes.size() > 3) axes.resize(3);
  return axes;
}

void search_tile(const Kernel& kernel, const TileCost& cost, std::span<const size_t> axes,
                 bool rests, Tile tile, Tile& best, double& best_cost) {
  if (axes.empty()) {
    const double now = cost(tile, best_cost * 0.99);
    if (now < best_cost * 0.99) {
      best = tile;
      best_cost = now;
    }
    return;
  }
  const int64_t size = size_of_axis(kernel, axes[0]);
  for (int64_t amount : kUpcasts) {
    if (amount > size || !fits(kernel, size, amount, rests)) continue;
    tile.amounts[axes[0]] = amount;
    search_tile(kernel, cost, axes.subspan(1), rests, tile, best, best_cost);
  }
}

bool is_too_much_code(const TileModel& model, const Tile& tile) {
  return model.leaves_no_sum(tile) ? model.sum_code(tile) > kMostStraight
                                   : model.code_size(tile) > kMostCode;
}

void add_unrolling(const Kernel& kernel, const TileModel& model, Tile& tile) {
  for (size_t axis = kernel.axes.size(); axis-- > 0;) {
    if (axis == tile.vector_axis || kind_of(kernel, axis) != AxisKind::Reduce ||
        !may_split(kernel, axis))
      continue;
    if (model.has_bounds(axis, tile)) continue;
    const int64_t size = size_of_axis(kernel, axis);
    Tile unrolled = tile;
    unrolled.amounts[axis] = size <= 8 ? size : size % 4 == 0 ? 4 : 1;
    if (model.code_size(unrolled) > kMostCopies || model.whole_code(unrolled) > kMostUnrolled)
      return;
    // Windows keep what their taps share in registers.
    if (model.fits_registers(tile) && !model.fits_registers(unrolled)) continue;
    tile = unrolled;
  }
}

}  // namespace plugrad::codegen
