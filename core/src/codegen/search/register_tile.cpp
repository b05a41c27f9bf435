// Chooses the amounts of a register tile by trying all combinations for a few axes.
#include <algorithm>

#include "codegen/search/heuristic.h"
#include "codegen/transforms/transforms.h"

namespace plugrad::codegen {
namespace {

constexpr int64_t kUpcasts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

constexpr double kMostTileCopies =
    32;  // copies of one instruction by unrolling; chosen, not measured
// Instructions of an unrolled loop's body; more hide no latency, and their values exceed the
// registers: the sums of pooling's gradient take 2.1 to 2.4 ms with this limit, 4.2 ms with four
// more windows unrolled (Zen 4, docs/performance.md).
constexpr double kMostUnrolled = 256;

// Larger odd amounts are used for short axes as a whole.
bool is_usual(int64_t amount) {
  return amount <= 8 || amount % 2 == 0;
}

bool has_useful_divisor(int64_t size) {
  return std::ranges::any_of(kUpcasts,
                             [&](int64_t n) { return n >= 4 && is_usual(n) && size % n == 0; });
}

// A remainder is a second copy of the kernel: accepted only for axes without a useful divisor, or
// if it is a small part of the axis.
bool amount_fits(const Kernel& kernel, int64_t size, int64_t amount, bool remainders) {
  if (size % amount == 0) return size == amount || is_usual(amount);
  if (!is_usual(amount)) return false;
  if (size >= 16 * amount && size % 4 != 0 && size % 6 != 0) return true;
  if (works_in_groups(*kernel.caps)) return false;
  return size >= 2 * amount || !has_useful_divisor(size) || (remainders && size >= 64 * amount);
}

}  // namespace

std::vector<size_t> tile_axes(const Kernel& kernel, const CostModel& model, const Tile& tile) {
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

void TileSearch::choose(std::span<const size_t> axes, Tile& tile, LaneChoice& best) const {
  if (axes.empty()) {
    const double now = cost(tile, best.cost * 0.99);
    if (now < best.cost * 0.99) best = {tile, now};
    return;
  }
  const size_t axis = axes[0];
  const int64_t size = size_of_axis(kernel, axis), before = tile.amounts[axis];
  for (int64_t amount : kUpcasts) {
    if (amount > size) break;
    if (!amount_fits(kernel, size, amount, remainders)) continue;
    tile.amounts[axis] = amount;
    if (!model.fits_registers(tile)) break;  // nor does any larger tile
    choose(axes.subspan(1), tile, best);
  }
  tile.amounts[axis] = before;
}

void add_unrolling(const Kernel& kernel, const CostModel& model, Tile& tile) {
  for (size_t axis = kernel.axes.size(); axis-- > 0;) {
    if (axis == tile.vector_axis || kind_of(kernel, axis) != AxisKind::Reduce ||
        !may_split(kernel, axis))
      continue;
    if (model.has_bounds(axis, tile)) continue;
    const int64_t size = size_of_axis(kernel, axis);
    Tile unrolled = tile;
    unrolled.amounts[axis] = size <= 8 ? size : size % 4 == 0 ? 4 : 1;
    if (model.code_size(unrolled) > kMostTileCopies || model.whole_code(unrolled) > kMostUnrolled)
      return;
    // Windows keep the elements that their taps share in registers.
    if (model.fits_registers(tile) && !model.fits_registers(unrolled)) continue;
    tile = unrolled;
  }
}

}  // namespace plugrad::codegen
