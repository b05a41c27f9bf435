// The cycles of a tile: its parts, each as if it ran alone, and what they come to side by side.
#include <algorithm>
#include <limits>

#include "codegen/search/heuristic.h"
#include "codegen/search/tile_model.h"

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
          c.packing;
}

}  // namespace

void TileCycles::add(const TileCycles& other, double times) {
  for (double TileCycles::* part :
       {&TileCycles::arithmetic, &TileCycles::accesses, &TileCycles::latency, &TileCycles::traffic,
        &TileCycles::loops, &TileCycles::packing, &TileCycles::all})
    this->*part += times * other.*part;
}

TileCycles TileModel::cycles_without_traffic(const Work& work) const {
  const cost::Machine& machine = kernel_.machine();
  TileCycles cycles{.arithmetic = work.arithmetic * work.share,
                    .accesses = work.memory * work.share,
                    .loops = work.passes * kLoopCost * work.share,
                    .packing = work.packing * work.share};
  // Other subgroups run while one waits: what is issued counts.
  if (works_in_groups(*kernel_.caps)) {
    const double least = has_reduce_ ? work.passes * machine.latency * work.share : 0;
    cycles.all =
        std::max(cycles.arithmetic + cycles.accesses, least) + cycles.packing + cycles.loops;
    return cycles;
  }
  cycles.arithmetic /= machine.multiply_adds;
  cycles.loops /= together();
  cycles.latency = work.chain * (machine.latency + kSlack) * work.share;
  add_up(cycles);
  return cycles;
}

TileCycles TileModel::cycles(const Tile& tile, double limit) const {
  const Work now = work(tile);
  TileCycles cycles = cycles_without_traffic(now);
  if (works_in_groups(*kernel_.caps) || cycles.all >= limit) return cycles;
  cycles.traffic = traffic(tile) * now.share;
  add_up(cycles);
  return cycles;
}

double TileModel::cost(const Tile& tile, double limit) const {
  if (!fits_registers(tile)) return std::numeric_limits<double>::infinity();
  return cycles(tile, limit).all;
}

}  // namespace plugrad::codegen
