// The cycles of a tile: its parts, each as if it ran alone, and what they come to side by side.
#include <algorithm>
#include <limits>
#include <numeric>

#include "codegen/tiling/cost_model.h"

namespace plugrad::codegen {
namespace {

constexpr double kLoopShare = 0.5;  // of the cycles of counting, which take places in the pipeline
constexpr double kBeside = 0.2;     // of a cycle
constexpr double kLoopCost = 1.5;   // instructions: counting, comparing, addressing
constexpr double kSlack = 1;        // that scheduling adds to the latency of a sum

// The slowest resource counts in full; the others, which run at the same time, count a little.
void add_up(TileCycles& c) {
  const double slowest = std::max({c.arithmetic, c.accesses, c.latency, c.traffic});
  c.all = slowest + kBeside * (c.arithmetic + c.accesses + c.traffic) + kLoopShare * c.loops +
          c.packing + c.storing;
}

}  // namespace

void TileCycles::add(const TileCycles& other, double times) {
  for (double TileCycles::* part :
       {&TileCycles::arithmetic, &TileCycles::accesses, &TileCycles::latency, &TileCycles::traffic,
        &TileCycles::loops, &TileCycles::packing, &TileCycles::storing, &TileCycles::all})
    this->*part += times * other.*part;
}

// The loops from the outermost on. Those that a packed operand depends on go outside, so that what
// was packed is used up before the next is.
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

// Whether it is loaded after the sum, as a bias is, and not in the sum's loops.
bool CostModel::stands_beside_sums(const Operation& operation) const {
  if (!has_reduce_) return false;
  for (size_t a = 0; a < sizes_.size(); ++a)
    if (is_reduce(a) && operation.stride[a] != 0) return false;
  return true;
}

// Whether its neighbours lie along an output loop and far apart along the sum, and no cache near
// the core holds it: staging may pack such rows block by block (search/stage_heuristic.cpp).
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

// Cycles in which lines come through the caches, beyond those in which each line comes once: those
// are the same for every tile, and of one row's part the rows around it know more.
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

// A short sum is still waiting for its terms when the next ones begin: those that are within reach
// of a processor that begins instructions out of order.
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
  // Other subgroups run while one waits: what is issued counts.
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
  return cycles;
}

double CostModel::cost(const Tile& tile, double limit) const {
  if (!fits_registers(tile)) return std::numeric_limits<double>::infinity();
  return cycles(tile, limit).all;
}

}  // namespace plugrad::codegen
