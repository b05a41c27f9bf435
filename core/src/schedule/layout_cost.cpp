#include "schedule/layout_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace plugrad::schedule {
namespace {

constexpr double kVectorsInTile = 2;  // of a register tile
constexpr double kTile = 6;  // a register tile's length along a loop that a load does not depend on
constexpr double kUnaligned = 1.2;     // of vectors that start anywhere
constexpr double kHorizontal = 16;     // the sum of a vector's lanes
constexpr double kPanelReadings = 32;  // for codegen to pack what the lanes read of a matrix
// Of a half type, beside the load: vcvtph2ps, or vpmovzxwd and a shift, are two instructions of the
// ports that compute.
constexpr double kCastCost = 2;
// A vector that is cast, stored and read again as f32: an elementwise kernel of 16,384 f32 takes
// 1.3 µs in the second cache, 1.3 ns a vector: 8 instructions at two a cycle and 3 GHz.
constexpr double kCopyCost = 8;
constexpr int64_t kFewReadings = 64;  // of each element: below, a packed copy does not pay
// Of a constant, copied once for many runs: fewer rows do not fill a register tile, and the product
// is better computed with lanes along its sum, in which a matrix is read as it lies.
constexpr int64_t kFewReadingsOfConstant = 8;

bool has(LoopSet set, size_t loop) {
  return (set >> loop & 1) != 0;
}

LoopSet loops_of(const std::vector<AxisIndex>& axes) {
  LoopSet all = 0;
  for (const AxisIndex& a : axes) all |= a.loops;
  return all;
}

}  // namespace

double LayoutCost::vectors(int64_t size) const {
  return static_cast<double>(size / lanes_ + std::popcount(static_cast<uint64_t>(size % lanes_)));
}

double LayoutCost::least() const {
  return total(best_loop());
}

size_t LayoutCost::best_loop() const {
  size_t best = nest_.loops.size();
  double least = total(best);
  for (size_t lane = 0; lane < nest_.loops.size(); ++lane) {
    const double cost = total(lane);
    if (cost >= least) continue;
    least = cost;
    best = lane;
  }
  return best;
}

double LayoutCost::total(size_t lane) const {
  double cost = store(lane);
  for (LoopSet around : nest_.bodies) cost += body(around, lane);
  for (const Reading& reading : nest_.readings) cost += access(reading, lane);
  return cost;
}

double LayoutCost::body(LoopSet around, size_t lane) const {
  double count = 1;
  for (LoopSet rest = around; rest != 0; rest &= rest - 1) {
    const auto l = static_cast<size_t>(std::countr_zero(rest));
    const int64_t size = nest_.loops[l].size;
    count *= l == lane ? vectors(size) : static_cast<double>(size);
  }
  return count;
}

double LayoutCost::store(size_t lane) const {
  double count = 1;
  for (size_t l = 0; l < nest_.loops.size(); ++l) {
    if (nest_.loops[l].reduces) continue;
    const int64_t size = nest_.loops[l].size;
    const bool unit = nest_.loops[l].axis == innermost_[nest_.output];
    if (l == lane && unit)
      count *= vectors(size);
    else
      count *= static_cast<double>(size) * (l == lane ? machine_.lane_cost : 1);
  }
  const bool sums_lanes = lane < nest_.loops.size() && nest_.loops[lane].reduces;
  return sums_lanes ? count * kHorizontal : count;
}

bool LayoutCost::gathers(const Reading& reading, size_t lane) const {
  if (!has(loops_of(reading.axes), lane)) return false;
  const uint32_t inner = innermost_[reading.node];
  return inner == kNoAxis || !has(reading.axes[inner].loops, lane);
}

double LayoutCost::loads(const Reading& reading, size_t lane, bool gathers) const {
  const LoopSet own = loops_of(reading.axes);
  double count = machine_.load_cost();
  for (size_t l = 0; l < nest_.loops.size(); ++l) {
    if (!has(reading.around, l)) continue;
    const int64_t size = nest_.loops[l].size;
    if (l == lane && !has(own, l))
      count *= std::ceil(vectors(size) / kVectorsInTile);
    else if (l == lane)
      count *= gathers ? static_cast<double>(size) * machine_.lane_cost : vectors(size);
    else if (has(own, l))
      count *= static_cast<double>(size);
    else
      count *= std::ceil(static_cast<double>(size) / kTile);
  }
  const uint32_t inner = innermost_[reading.node];
  const bool shifted = !gathers && has(own, lane) && inner != kNoAxis && !reading.axes[inner].plain;
  return shifted ? count * kUnaligned : count;
}

double LayoutCost::packed(const Reading& reading, size_t lane) const {
  const double copying = reading.is_constant ? 0 : elements_of(reading) * machine_.lane_cost;
  return copying + loads(reading, lane, false);
}

double LayoutCost::elements_of(const Reading& reading) const {
  double elements = 1;
  for (const AxisIndex& a : reading.view_axes)
    for (size_t l = 0; l < nest_.loops.size(); ++l)
      if (has(a.loops, l)) elements *= static_cast<double>(nest_.loops[l].size);
  return elements;
}

// Of a matrix codegen packs what it needs, in panels. A constant one is copied instead where all of
// it stays in a cache, so that rows which lie apart do no harm: that of a layer of MiniLM of 384 by
// 384 gains 6% on an Intel Xeon with 2 MiB, that of 384 by 1,536 takes twice as long.
bool LayoutCost::is_read_often(const Reading& reading, double readings, bool is_matrix) const {
  if (!reading.is_constant) return !is_matrix && readings >= kFewReadings;
  const double bytes = elements_of(reading) * sizeof(float);
  return readings >= kFewReadingsOfConstant &&
         (!is_matrix || bytes <= static_cast<double>(cache_bytes_));
}

double LayoutCost::access(const Reading& reading, size_t lane) const {
  const bool apart = gathers(reading, lane);
  const double cost = loads(reading, lane, apart);
  const bool packs = apart && (pays_packed(reading, lane) || is_panel(reading, lane));
  return packs ? std::min(cost, packed(reading, lane)) : cost;
}

bool LayoutCost::is_panel(const Reading& reading, size_t lane) const {
  if (nest_.loops[lane].reduces) return false;
  const LoopSet own = loops_of(reading.axes);
  for (const AxisIndex& a : reading.axes)
    if (!a.plain && a.loops != 0) return false;
  double readings = 1;
  bool sums = false;
  for (size_t l = 0; l < nest_.loops.size(); ++l) {
    const bool reduces = nest_.loops[l].reduces;
    sums = sums || (has(own, l) && reduces);
    if (has(reading.around, l) && !has(own, l) && !reduces)
      readings *= static_cast<double>(nest_.loops[l].size);
  }
  return sums && readings >= kPanelReadings;
}

bool LayoutCost::pays_packed(const Reading& reading, size_t lane) const {
  if (!packs_ || reading.view == reading.node || !gathers(reading, lane)) return false;
  double readings = 1;
  const LoopSet own = loops_of(reading.axes);
  bool lane_is_plain = false;
  int64_t sums = 0;  // loops of the sum that it is read in
  for (const AxisIndex& a : reading.view_axes) {
    if (!a.plain && a.loops != 0) return false;
    lane_is_plain = lane_is_plain || (a.plain && has(a.loops, lane));
  }
  for (size_t l = 0; l < nest_.loops.size(); ++l) {
    sums += has(own, l) && nest_.loops[l].reduces;
    if (has(reading.around, l) && !has(own, l))
      readings *= static_cast<double>(nest_.loops[l].size);
  }
  return is_read_often(reading, readings, sums <= 1) && lane_is_plain &&
         packed(reading, lane) < loads(reading, lane, true);
}

size_t LayoutCost::lane_of(const Reading& reading, size_t lane) const {
  const uint32_t inner = innermost_[reading.node];
  if (has(reading.around, lane) || inner == kNoAxis || reading.axes[inner].loops == 0) return lane;
  return static_cast<size_t>(std::countr_zero(reading.axes[inner].loops));
}

bool LayoutCost::pays_widened(const Reading& reading, size_t lane) const {
  if (!packs_ || reading.widened == kNoId) return false;
  // A sum in which nothing depends on a loop around it is computed once for all of that loop.
  Reading once = reading;
  LoopSet used = 0;
  for (const Reading& other : nest_.readings)
    if (other.around == reading.around) used |= loops_of(other.axes);
  once.around &= used;
  double elements = 1;
  for (size_t l = 0; l < nest_.loops.size(); ++l)
    if (has(loops_of(reading.axes), l)) elements *= static_cast<double>(nest_.loops[l].size);
  const double copies = elements / static_cast<double>(lanes_) * kCopyCost + machine_.kernel_cost();
  return copies < loads(once, lane_of(once, lane), false) / machine_.load_cost() * kCastCost;
}

}  // namespace plugrad::schedule
