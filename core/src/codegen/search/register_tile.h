// The steps that both heuristics take to find a register tile.
#pragma once

#include <functional>
#include <span>

#include "codegen/tiling/cost_model.h"

namespace plugrad::codegen {

/// Output axes along which some load can be reused, those with most reuse to gain first.
std::vector<size_t> tile_axes(const Kernel& kernel, const CostModel& model, const Tile& tile);

/// The cheapest amounts for `axes`, the others as in `tile`, where that is clearly cheaper than
/// `best`. With `rests` an amount may leave a small one.
using TileCost = std::function<double(const Tile&, double limit)>;  // as CostModel::cost
void choose_tile(const Kernel& kernel, const TileCost& cost, std::span<const size_t> axes,
                 bool rests, Tile tile, Tile& best, double& best_cost);

/// Short reduce loops around little code are unrolled whole, longer ones by 4.
void add_unrolling(const Kernel& kernel, const CostModel& model, Tile& tile);

}  // namespace plugrad::codegen
