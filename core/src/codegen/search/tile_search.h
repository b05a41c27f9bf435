// The steps that both heuristics take to find a register tile.
#pragma once

#include <functional>
#include <span>

#include "codegen/search/tile_model.h"

namespace plugrad::codegen {

inline AxisKind kind_of(const Kernel& kernel, size_t axis) {
  return range_kind(kernel.graph[kernel.axes[axis]]);
}
inline int64_t size_of_axis(const Kernel& kernel, size_t axis) {
  return range_size(kernel.graph, kernel.axes[axis]);
}

/// A kernel of one store of another.
Kernel part_of(const Kernel& kernel, Id store);

/// With what was applied to it, to try changes on.
Kernel copy_of(const Kernel& kernel);

/// Iterations of all axes.
double iterations_of(const Kernel& kernel);

/// A part of the size that leaves no rest where there is one that is not much smaller than `most`.
int64_t part_of_size(int64_t size, int64_t most);

/// The outermost output loop that may become group ids, of those that `allows`, where given, says
/// by their numbers; the number of axes for none.
size_t outermost_loop(const Kernel& kernel, const std::function<bool(uint32_t)>& allows = {});

/// Output axes along which some load can be reused, those with most reuse to gain first.
std::vector<size_t> tile_axes(const Kernel& kernel, const TileModel& model, const Tile& tile);

/// The cheapest amounts for `axes`, the others as in `tile`, where that is clearly cheaper than
/// `best`. With `rests` an amount may leave a small one.
using TileCost = std::function<double(const Tile&, double limit)>;  // as TileModel::cost
void search_tile(const Kernel& kernel, const TileCost& cost, std::span<const size_t> axes,
                 bool rests, Tile tile, Tile& best, double& best_cost);

/// Whether the tile makes more code than pays.
bool is_too_much_code(const TileModel& model, const Tile& tile);

/// Short reduce loops around little code are unrolled whole, longer ones by 4.
void add_unrolling(const Kernel& kernel, const TileModel& model, Tile& tile);

}  // namespace plugrad::codegen
