// The cycles of a tile: each resource alone, their combination, and the stores with register
// transposes.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "codegen/tiling/cost_model.h"

namespace plugrad::codegen {
namespace {

// Chosen; none is measured alone. The predicted times as a whole are compared with measured ones in
// docs/performance.md, "The model against the clock".
constexpr double kLoopShare = 0.5;  // share of the loop cycles that compete for the pipeline
constexpr double kBeside = 0.2;     // of the cycles of resources other than the slowest
constexpr double kLoopCost = 1.5;   // instructions: counting, comparing, addressing
constexpr double kSlack = 1;        // cycles that scheduling adds to the latency of an addition

// The slowest resource counts in full, the others run beside it and count by kBeside.
void add_up(TileCycles& c) {
  const double slowest = std::max({c.arithmetic, c.accesses, c.latency, c.traffic});
  c.all = slowest + kBeside * (c.arithmetic + c.accesses + c.traffic) + kLoopShare * c.loops +
          c.packing + c.storing;
}

// Adjacent results collected in a local buffer, as kFewNeighbours of cache_read_heuristic.cpp.
constexpr int64_t kCollected = 4;

}  // namespace

void TileCycles::add(const TileCycles& other, double times) {
  for (double TileCycles::* part :
       {&TileCycles::arithmetic, &TileCycles::accesses, &TileCycles::latency, &TileCycles::traffic,
        &TileCycles::loops, &TileCycles::packing, &TileCycles::storing, &TileCycles::all})
    this->*part += times * other.*part;
}

// The loops, outermost first. Loops that a packed operand depends on go outside, so that a packed
// tile is used up before the next one.
std::vector<size_t> CostModel::loop_order(const Tile& tile) const {
  std::vector<size_t> order(sizes_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto packed = std::ranges::find_if(
      operations_, [&](const Operation& operation) { return is_packed(operation, tile); });
  if (packed != operations_.end())
    std::ranges::stable_partition(
        order, [&](size_t a) { return !is_reduce(a) && packed->stride[a] != 0; });
  std::ranges::stable_partition(order, [&](size_t a) { return !is_reduce(a); });
  return order;
}

// Whether the operation runs after the sum, as the load of a bias does, not inside its loops.
bool CostModel::stands_beside_sums(const Operation& operation) const {
  if (!has_reduce_) return false;
  for (size_t a = 0; a < sizes_.size(); ++a)
    if (is_reduce(a) && operation.stride[a] != 0) return false;
  return true;
}

// Whether the load is consecutive along an output loop and strided along the sum, and exceeds the
// core's caches: packing may copy such rows block by block (search/cache_read_heuristic.cpp).
bool CostModel::has_distant_rows(const Operation& operation) const {
  if (operation.kind != Operation::Kind::Load) return false;
  auto bytes = static_cast<double>(element_bytes_);
  bool has_neighbours = false, is_apart = false;
  for (size_t a = 0; a < sizes_.size(); ++a) {
    const int64_t stride = operation.stride[a];
    if (stride == kNear || stride == kIrregular || (is_reduce(a) && stride == 1)) return false;
    has_neighbours |= !is_reduce(a) && stride == 1;
    is_apart |= is_reduce(a) && stride != 0;
    if (stride != 0) bytes *= static_cast<double>(sizes_[a]);
  }
  return has_neighbours && is_apart && bytes > static_cast<double>(kernel_.caps->private_bytes) / 2;
}

bool CostModel::may_pack_rows() const {
  return kernel_.caps->private_bytes != 0 &&
         std::ranges::any_of(operations_, [&](const Operation& i) { return has_distant_rows(i); });
}

bool CostModel::packs_rows(const Operation& operation, const Tile& tile) const {
  const size_t lanes = tile.vector_axis;
  return is_packing_rows_ && lanes < operation.stride.size() && operation.stride[lanes] == 0 &&
         has_distant_rows(operation) &&
         std::ranges::any_of(operations_, [&](const Operation& i) { return is_packed(i, tile); });
}

cost::Operand CostModel::operand_of(const Operation& operation, const Tile& tile) const {
  cost::Operand operand{
      {}, element_bytes_, is_packed(operation, tile) || packs_rows(operation, tile)};
  for (int64_t stride : operation.stride)
    operand.steps.push_back(stride == kNear || stride == kIrregular ? cost::kNear
                                                                    : stride * element_bytes_);
  return operand;
}

// Cycles of cache lines fetched more than once. First fetches are the same for every tile, and only
// the surrounding rows know the reuse of a row's part.
double CostModel::traffic(const Tile& tile) const {
  std::vector<cost::Operand> loads;
  double stores = 0;
  for (const Operation& operation : operations_)
    if (operation.kind == Operation::Kind::Store)
      stores += store_traffic(operation, tile);
    else if (operation.kind == Operation::Kind::Load && !stands_beside_sums(operation))
      loads.push_back(operand_of(operation, tile));
  return stores +
         cost::reading_again({sizes_, tile.amounts, loop_order(tile)}, loads, kernel_.machine());
}

// Short sums overlap: those within the reorder window of an out-of-order core wait together.
double CostModel::sums_at_once(const Work& work) const {
  const cost::Machine& machine = kernel_.machine();
  const double instructions =
      work.arithmetic + work.memory / machine.load_cost() + work.passes * kLoopCost;
  return 1 + machine.window * work.sums / instructions;
}

TileCycles CostModel::cycles_without_traffic(const Work& work) const {
  const cost::Machine& machine = kernel_.machine();
  TileCycles cycles{.arithmetic = work.arithmetic * work.share,
                    .accesses = work.memory * work.share,
                    .loops = work.passes * kLoopCost * work.share,
                    .packing = work.packing * work.share,
                    .storing = work.storing};
  // Other subgroups run while one waits, so only issued instructions count.
  if (works_in_groups(*kernel_.caps)) {
    const double least = has_reduce_ ? work.passes * machine.latency * work.share : 0;
    cycles.all =
        std::max(cycles.arithmetic + cycles.accesses, least) + cycles.packing + cycles.loops;
    return cycles;
  }
  cycles.arithmetic /= machine.multiply_adds;
  cycles.loops /= together();
  cycles.storing /= machine.multiply_adds;
  cycles.latency = work.chain * (machine.latency + kSlack) * work.share / sums_at_once(work);
  add_up(cycles);
  return cycles;
}

TileCycles CostModel::cycles(const Tile& tile, double limit) const {
  const Work now = work(tile);
  TileCycles cycles = cycles_without_traffic(now);
  if (works_in_groups(*kernel_.caps) || cycles.all >= limit) return cycles;
  cycles.traffic = traffic(tile) * now.share;
  add_up(cycles);
  TileCycles all;
  all.add(cycles, beyond_sizes(tile));
  return all;
}

double CostModel::cost(const Tile& tile, double limit) const {
  if (!fits_registers(tile)) return std::numeric_limits<double>::infinity();
  return cycles(tile, limit).all;
}

// For a store with strided lanes: the axis along which its elements are consecutive, and the number
// of copies stored together. A finished sum has some even if the tile does not expand that axis,
// because a later cache_write may collect them.
CostModel::Beside CostModel::beside(const Operation& operation, const Tile& tile) const {
  const size_t lanes = tile.vector_axis;
  if (operation.kind != Operation::Kind::Store || lanes >= operation.last || is_reduce(lanes) ||
      works_in_groups(*kernel_.caps))
    return {};
  if (operation.stride[lanes] == 1 || operation.stride[lanes] == kNear ||
      operation.stride[lanes] == kIrregular)
    return {};
  for (size_t a = 0; a < operation.last; ++a) {
    if (operation.stride[a] != 1) continue;
    const bool waits = has_reduce_ && kernel_.caps->private_bytes != 0 && tile.outer.empty();
    const int64_t copies = waits ? std::max<int64_t>(tile.amounts[a], kCollected) : tile.amounts[a];
    return {a, std::min({copies, sizes_[a], lanes_})};
  }
  return {};
}

// The largest power of two of these that one instruction stores.
int64_t CostModel::neighbours(const Operation& operation, const Tile& tile) const {
  return static_cast<int64_t>(
      std::bit_floor(static_cast<uint64_t>(beside(operation, tile).copies)));
}

// Shuffles and stores per vector of such a store; 0 if lanes are stored one by one.
double CostModel::transposing(const Operation& operation, const Tile& tile) const {
  const int64_t together = neighbours(operation, tile);
  if (together == 1) return 0;
  return std::log2(static_cast<double>(together)) +
         static_cast<double>(lanes_) / static_cast<double>(together);
}

size_t CostModel::axis_beside_lanes(const Tile& tile) const {
  for (const Operation& operation : operations_) {
    if (operation.kind != Operation::Kind::Store || tile.vector_axis >= operation.last ||
        works_in_groups(*kernel_.caps))
      continue;
    for (size_t a = 0; a < operation.last; ++a)
      if (a != tile.vector_axis && operation.stride[a] == 1) return a;
  }
  return SIZE_MAX;
}

// A store with strided lanes writes a few elements to each of many lines at a time; consecutive
// lanes fill their lines.
double CostModel::store_traffic(const Operation& operation, const Tile& tile) const {
  if (tile.vector_axis < operation.last && operation.stride[tile.vector_axis] == 1) return 0;
  cost::Nest nest{sizes_, tile.amounts, loop_order(tile)};
  for (size_t a = 0; a < sizes_.size(); ++a)
    if (is_reduce(a)) nest.sizes[a] = nest.tile[a] = 1;
  if (const auto [axis, copies] = beside(operation, tile); axis != SIZE_MAX)
    nest.tile[axis] = copies / std::popcount(static_cast<uint64_t>(copies));
  return cost::writing_again(nest, operand_of(operation, tile), kernel_.machine());
}

}  // namespace plugrad::codegen
