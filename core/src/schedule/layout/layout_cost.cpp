#include "schedule/layout/layout_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace plugrad::schedule {
namespace {

constexpr double kAmounts[] = {2, 3, 4, 6, 8, 12, 16, 24};  // of a loop in a register tile
// share of the registers that hold sums; the others hold operands
constexpr double kForSums = 0.75;
// iterations of a sum's loop for one load of a loop-invariant value
constexpr double kHoisted = 6;
// Instructions for a mispredicted branch: 13 cycles on Zen 4 (Agner Fog, The microarchitecture of
// Intel, AMD and VIA CPUs) with two instructions each.
constexpr double kLoopStart = 26;
constexpr double kUnaligned = 1.2;  // factor for unaligned vectors
constexpr double kHorizontal = 16;  // instructions to add the lanes of a vector
// reads of each element from which codegen packs a matrix operand
constexpr double kPanelReads = 32;
// Instructions to cast a half type after the load: vcvtph2ps, or vpmovzxwd and a shift, are two on
// the ports that compute.
constexpr double kCastCost = 2;
// Instructions to cast, store and read again a vector as f32: an elementwise kernel of 16,384 f32
// takes 1.3 us in the second cache, 1.3 ns a vector: 8 instructions at two a cycle and 3 GHz.
constexpr double kCopyCost = 8;
constexpr int64_t kFewReads = 64;  // reads of each element below which a packed copy does not pay
// The same for a constant, which is copied once for many runs: fewer rows do not fill a register
// tile, and lanes along the sum, which read the matrix in its own order, are faster.
constexpr int64_t kFewReadsOfConstant = 8;

bool has(LoopSet set, size_t loop) {
  return (set >> loop & 1) != 0;
}

LoopSet loops_of(const std::vector<AxisIndex>& axes) {
  LoopSet all = 0;
  for (const AxisIndex& a : axes) all |= a.loops;
  return all;
}

double vectors_of(int64_t size, int64_t lanes) {
  return static_cast<double>(size / lanes + std::popcount(static_cast<uint64_t>(size % lanes)));
}

/// Finds a nest's register tile for vectors along one loop: results of a tile share loads that do
/// not depend on their loops.
class TileFinder {
 public:
  TileFinder(const LoopNest& nest, size_t lane, int64_t lanes) : nest_(nest) {
    for (size_t l = 0; l < nest.loops.size(); ++l) {
      const int64_t size = nest.loops[l].size;
      passes_.push_back(l == lane ? vectors_of(size, lanes) : static_cast<double>(size));
    }
    for (const Access& r : nest.accesses) reads_.push_back({r.around, loops_of(r.axes), 1});
    for (Read& read : reads_)
      for (size_t l = 0; l < passes_.size(); ++l)
        if (has(read.around, l)) read.untiled *= passes_[l];
  }

  /// The tile with at most `most` vectors of sums.
  std::vector<double> find(double most) const {
    std::vector<double> tile(nest_.loops.size(), 1), best = tile;
    double held = 1, least = loads(tile);
    for (bool grows = true; grows; tile = best) {
      grows = false;
      const double before = held;
      for (size_t l = 0; l < tile.size(); ++l) {
        if (nest_.loops[l].reduces) continue;
        std::vector<double> longer = tile;
        longer[l] = next(tile[l], passes_[l]);
        const double sums = before / tile[l] * longer[l], count = loads(longer);
        if (sums > most || count >= least) continue;
        least = count;
        best = longer;
        held = sums;
        grows = true;
      }
    }
    return best;
  }

 private:
  struct Read {
    LoopSet around, own;
    double untiled;
  };

  static double next(double amount, double most) {
    for (double longer : kAmounts)
      if (longer > amount) return std::min(longer, most);
    return amount;
  }

  double loads(const std::vector<double>& tile) const {
    double all = 0;
    for (const Read& read : reads_) {
      double count = read.untiled;
      for (size_t l = 0; l < tile.size(); ++l)
        if (has(read.around, l) && !has(read.own, l)) count /= tile[l];
      all += count;
    }
    return all;
  }

  const LoopNest& nest_;
  std::vector<double> passes_;
  std::vector<Read> reads_;
};

}  // namespace

void add_tiles(LoopNest& nest, const cost::Machine& machine, int64_t lanes) {
  for (size_t lane = 0; lane <= nest.loops.size(); ++lane)
    nest.tiles.push_back(TileFinder(nest, lane, lanes).find(kForSums * machine.registers));
}

double LayoutCost::vectors(int64_t size) const {
  return vectors_of(size, lanes_);
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
  for (LoopSet around : nest_.bodies)
    cost += body(as_run(around), lane) + kLoopStart * starts(around, lane);
  for (const Access& access : nest_.accesses) cost += access_cost(access, lane);
  return cost;
}

// Loops run in the order of the output's layout: a value that only depends on an inner loop is
// computed again in each iteration of the outer ones.
LoopSet LayoutCost::as_run(LoopSet around) const {
  const LoopSet outputs = nest_.bodies[0], own = around & outputs;
  LoopSet inner = 0;
  for (size_t l = 0; l < nest_.loops.size(); ++l)
    if (has(outputs, l) && nest_.loops[l].axis == innermost_[nest_.output])
      inner |= LoopSet{1} << l;
  if ((own & inner) != 0) return around | outputs;
  const LoopSet outside = own == 0 ? 0 : std::bit_floor(own) - 1;
  return around | (outputs & outside & ~inner);
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

size_t LayoutCost::inner_loop(LoopSet around, size_t lane) const {
  const size_t none = nest_.loops.size();
  const size_t last = around == 0 ? none : static_cast<size_t>(std::bit_width(around)) - 1;
  if (last == none || !nest_.loops[last].reduces) return none;
  size_t inner = last;
  int64_t most = 0;
  for (const Access& r : nest_.accesses) {
    const uint32_t at = innermost_[r.node];
    if (at == kNoAxis || !r.axes[at].plain || r.axes[at].loops == 0 || r.elements <= most) continue;
    const auto loop = static_cast<size_t>(std::countr_zero(r.axes[at].loops));
    if (nest_.loops[loop].owner != nest_.loops[last].owner || !nest_.loops[loop].reduces) continue;
    if (lane < none && pays_packed(r, lane)) continue;
    most = r.elements;
    inner = loop;
  }
  return inner;
}

// Starts of a sum's inner loop if it runs along a window: it is short and cut by borders, so that
// its end is mispredicted. Results of a register tile share a start.
double LayoutCost::starts(LoopSet around, size_t lane) const {
  const size_t inner = inner_loop(around, lane);
  const auto is_window = [&](const Access& r) {
    return std::ranges::any_of(r.axes,
                               [&](const AxisIndex& a) { return has(a.loops, inner) && !a.plain; });
  };
  if (inner == nest_.loops.size() || std::ranges::none_of(nest_.accesses, is_window)) return 0;
  double count = 1;
  for (size_t l = 0; l < nest_.loops.size(); ++l) {
    if (!has(around, l) || l == inner) continue;
    const int64_t size = nest_.loops[l].size;
    const double passes = l == lane ? vectors(size) : static_cast<double>(size);
    count *= nest_.loops[l].reduces ? passes : std::ceil(passes / nest_.tiles[lane][l]);
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

bool LayoutCost::gathers(const Access& access, size_t lane) const {
  if (!has(loops_of(access.axes), lane)) return false;
  const uint32_t inner = innermost_[access.node];
  return inner == kNoAxis || !has(access.axes[inner].near, lane);
}

double LayoutCost::loads(const Access& access, size_t lane, bool gathers) const {
  const LoopSet own = loops_of(access.axes), around = as_run(access.around);
  double count = machine_.load_cost();
  for (size_t l = 0; l < nest_.loops.size(); ++l) {
    if (!has(around, l)) continue;
    const int64_t size = nest_.loops[l].size;
    const double passes = l == lane ? vectors(size) : static_cast<double>(size);
    if (!has(own, l))
      count *= std::ceil(passes / (nest_.loops[l].reduces ? kHoisted : nest_.tiles[lane][l]));
    else
      count *= l == lane && gathers ? static_cast<double>(size) * machine_.lane_cost : passes;
  }
  const uint32_t inner = innermost_[access.node];
  const bool shifted = !gathers && has(own, lane) && inner != kNoAxis && !access.axes[inner].plain;
  return shifted ? count * kUnaligned : count;
}

double LayoutCost::packed(const Access& access, size_t lane) const {
  const double copying =
      access.is_constant ? 0 : elements_of(access) * machine_.lane_cost + machine_.kernel_cost();
  return copying + loads(access, lane, false);
}

double LayoutCost::elements_of(const Access& access) const {
  double elements = 1;
  for (const AxisIndex& a : access.view_axes)
    for (size_t l = 0; l < nest_.loops.size(); ++l)
      if (has(a.loops, l)) elements *= static_cast<double>(nest_.loops[l].size);
  return elements;
}

// Codegen packs panels of a matrix that is not constant. A constant matrix is copied if it fits a
// cache, so that distant rows do no harm: the copy of a 384 x 384 layer of MiniLM gains 6% on an
// Intel Xeon with 2 MiB of cache, the copy of a 384 x 1,536 layer takes twice as long.
bool LayoutCost::is_read_often(const Access& access, double reads, bool is_matrix) const {
  if (!access.is_constant) return !is_matrix && reads >= kFewReads;
  const double bytes = elements_of(access) * sizeof(float);
  return reads >= kFewReadsOfConstant && (!is_matrix || bytes <= static_cast<double>(cache_bytes_));
}

double LayoutCost::access_cost(const Access& access, size_t lane) const {
  const bool apart = gathers(access, lane);
  const double cost = loads(access, lane, apart);
  const bool packs = apart && (pays_packed(access, lane) || is_panel(access, lane));
  return packs ? std::min(cost, packed(access, lane)) : cost;
}

bool LayoutCost::is_panel(const Access& access, size_t lane) const {
  if (nest_.loops[lane].reduces) return false;
  const LoopSet own = loops_of(access.axes);
  LoopSet inside = LoopSet{1} << lane;
  for (size_t l = 0; l < nest_.loops.size(); ++l)
    if (nest_.loops[l].reduces) inside |= LoopSet{1} << l;
  // Axes outside the panel, e.g. heads that share their keys, may be read in any way.
  for (const AxisIndex& a : access.axes)
    if (!a.plain && (a.loops & inside) != 0) return false;
  double reads = 1;
  bool sums = false;
  for (size_t l = 0; l < nest_.loops.size(); ++l) {
    const bool reduces = nest_.loops[l].reduces;
    sums = sums || (has(own, l) && reduces);
    if (has(access.around, l) && !has(own, l) && !reduces)
      reads *= static_cast<double>(nest_.loops[l].size);
  }
  return sums && reads >= kPanelReads;
}

bool LayoutCost::pays_packed(const Access& access, size_t lane) const {
  if (!packs_ || access.view == access.node || !gathers(access, lane)) return false;
  double reads = 1;
  const LoopSet own = loops_of(access.axes);
  bool lane_is_plain = false;
  int64_t sums = 0;  // loops of the sum that reads it
  for (const AxisIndex& a : access.view_axes) {
    if (!a.plain && a.loops != 0) return false;
    lane_is_plain = lane_is_plain || (a.plain && has(a.loops, lane));
  }
  for (size_t l = 0; l < nest_.loops.size(); ++l) {
    sums += has(own, l) && nest_.loops[l].reduces;
    if (has(access.around, l) && !has(own, l)) reads *= static_cast<double>(nest_.loops[l].size);
  }
  return is_read_often(access, reads, sums <= 1) && lane_is_plain &&
         packed(access, lane) < loads(access, lane, true);
}

size_t LayoutCost::lane_of(const Access& access, size_t lane) const {
  const uint32_t inner = innermost_[access.node];
  if (has(access.around, lane) || inner == kNoAxis || access.axes[inner].loops == 0) return lane;
  return static_cast<size_t>(std::countr_zero(access.axes[inner].loops));
}

bool LayoutCost::pays_cast_copy(const Access& access, size_t lane) const {
  if (!packs_ || access.cast_copy == kNoId) return false;
  // A sum is computed once for all iterations of loops around it that none of its operands depend
  // on.
  Access once = access;
  LoopSet used = 0;
  for (const Access& other : nest_.accesses)
    if (other.around == access.around) used |= loops_of(other.axes);
  once.around &= used;
  double elements = 1;
  for (size_t l = 0; l < nest_.loops.size(); ++l)
    if (has(loops_of(access.axes), l)) elements *= static_cast<double>(nest_.loops[l].size);
  const double copies = elements / static_cast<double>(lanes_) * kCopyCost + machine_.kernel_cost();
  return copies < loads(once, lane_of(once, lane), false) / machine_.load_cost() * kCastCost;
}

}  // namespace plugrad::schedule
