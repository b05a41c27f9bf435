// The unit is one vector instruction. An instruction is issued once for every element (or vector of
// elements) of the axes that it depends on, and again for every pass of the loops around it that it
// does not depend on; expanding such a loop by n divides those passes by n. That is all there is to
// reuse in registers.
#include "codegen/search/tile_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "codegen/gates.h"
#include "codegen/loop_bounds.h"
#include "codegen/search/heuristic.h"
#include "uop/facts.h"

namespace plugrad::codegen {
namespace {

constexpr double kLoadCost = 0.5;      // two loads a cycle beside the arithmetic
constexpr double kLaneCost = 3;        // a scalar load and its insertion into a vector
constexpr double kPickCost = 8;        // some loads and shuffles for each vector
constexpr double kPackCost = 3;        // a load and a store of a lane
constexpr double kPackReuse = 32;      // of each element by other loops
constexpr int64_t kWaiting = 4;        // neighbours of a result, in scratch
constexpr double kLoopCost = 1.5;      // counting, comparing, addressing
constexpr double kStoreCode = 0.5;     // of what copies inside the loops weigh
constexpr double kLatency = 4;         // an accumulator's add cannot follow its last one sooner
constexpr double kHorizontalCost = 3;  // one halving of a vector

// Of the iterations of the range, those that the clause leaves, where it meets one other range;
// each clause is one of a pair of borders.
double share_of(const Graph& g, const LoopBound& b) {
  if (b.rest.terms.size() > 1) return 1;
  const int64_t size = range_size(g, b.range);
  const Id other = b.rest.terms.empty() ? kNoId : b.rest.terms[0].id;
  const bool is_rest =
      other != kNoId && g[other].op == Op::FloorMod && is_const(g, g[other].src[1]);
  if (other != kNoId && g[other].op != Op::Range && !is_rest) return 1;
  const int64_t count = other == kNoId ? 1
                        : is_rest      ? const_int(g, g[other].src[1])
                                       : range_size(g, other);
  if (size * count > 4096) return 1;
  int64_t holds = 0;
  for (int64_t o = 0; o < count; ++o)
    for (int64_t i = 0; i < size; ++i)
      holds +=
          b.factor * i + (other == kNoId ? 0 : b.rest.terms[0].factor * o) + b.rest.constant < 0;
  return static_cast<double>(holds) / static_cast<double>(size * count);
}

}  // namespace

TileModel::TileModel(Kernel& kernel)
    : kernel_(kernel), open_(kernel.graph), simplify_(kernel.graph, kernel.rules()) {
  const Graph& g = kernel.graph;
  for (Id axis : kernel.axes) sizes_.push_back(range_size(g, axis));
  uint32_t widest_bytes = 1;
  Reachable reachable;
  const auto is_hint = [&](Id id) { return g[id].op == Op::Bounded; };
  for (Id id : reachable.from(g, std::span(&kernel.sink, 1), is_hint)) {
    const Node& n = g[id];
    if (n.op == Op::Load)
      add_item(Item::Kind::Load, id, g.sources(n)[1]);
    else if (n.op == Op::Store)
      add_item(Item::Kind::Store, id, g.sources(n)[1]);
    else if (n.op == Op::Reduce)
      add_item(Item::Kind::Accumulate, g.sources(n)[0], kNoId);
    else if (is_alu(n.op) && n.dtype != DType::Index)
      add_item(Item::Kind::Alu, id, kNoId);
    if (n.op == Op::Reduce) add_bounds(id);
    if (n.op == Op::Load || n.op == Op::Reduce)
      widest_bytes = std::max(widest_bytes, size_of(n.dtype));
    has_reduce_ |= n.op == Op::Reduce;
  }
  element_bytes_ = widest_bytes;
  const DType widest = widest_bytes == 8 ? DType::F64 : DType::F32;
  lanes_ = std::max(1u, kernel.caps->vector_lanes[static_cast<size_t>(widest)]);
}

void TileModel::add_item(Item::Kind kind, Id id, Id index) {
  const Node& n = kernel_.graph[id];
  Item item{kind, {}, kind == Item::Kind::Alu && (n.op == Op::Where || n.dtype == DType::Bool), 0};
  for (size_t a = 0; a < kernel_.axes.size(); ++a) {
    int64_t stride = open_.depends(id, kernel_.axes[a]) ? 1 : 0;
    if (index != kNoId) stride = memory_stride(kind, id, index, kernel_.axes[a]);
    item.stride.push_back(stride);
    if (stride != 0) item.last = a + 1;
  }
  items_.push_back(std::move(item));
}

void TileModel::add_bounds(Id reduce) {
  const auto place = [&](Id r) {
    return static_cast<size_t>(std::ranges::find(kernel_.axes, r) - kernel_.axes.begin());
  };
  const std::vector<LoopBound> clauses = loop_bounds(kernel_.graph, open_, reduce);
  for (const LoopBound& b : clauses) {
    Bound bound{place(b.range), {}, 1};
    for (Id r : open_.members(open_[b.clause]))
      if (r != b.range) bound.deciding.push_back(place(r));
    bound.share = share_of(kernel_.graph, b);
    bounds_.push_back(std::move(bound));
  }
}

bool TileModel::holds(const Bound& bound, const Tile& tile) const {
  const auto expands = [&](size_t axis) {
    return tile.amounts[axis] > 1 || axis == tile.vector_axis;
  };
  return !expands(bound.axis) && std::ranges::none_of(bound.deciding, expands);
}

bool TileModel::has_bounds(size_t axis, const Tile& tile) const {
  return std::ranges::any_of(bounds_,
                             [&](const Bound& b) { return b.axis == axis && holds(b, tile); });
}

int64_t TileModel::memory_stride(Item::Kind kind, Id id, Id index, Id axis) {
  Graph& g = kernel_.graph;
  const int64_t stride = stride_of(g, index, axis).value_or(kIrregular);
  const size_t gate = kind == Item::Kind::Load ? 2 : 3;
  const bool has_gate =
      kind == Item::Kind::Load ? g.sources(id).size() > gate : has_strict_gate(g, id);
  const bool gated = has_gate && open_.depends(g.sources(id)[gate], axis);
  if (gated && kind == Item::Kind::Load && stride == 1 && gates_lanes(*kernel_.caps, 2)) return 1;
  // A value or a gate may vary along an axis that the address does not.
  if (gated || (stride == 0 && open_.depends(id, axis))) return kIrregular;
  if (kind == Item::Kind::Store || stride == 0 || stride == 1) return stride;
  const int64_t count = std::min<int64_t>(range_size(g, axis), 8);
  const auto steps = index_steps(g, simplify_, index, axis, count);
  if (!steps) return stride;
  const auto [low, high] = std::ranges::minmax(*steps);
  return high - low < 4 * count ? kNear : stride;
}

int64_t TileModel::pieces(int64_t amount) const {
  return amount / lanes_ + std::popcount(static_cast<uint64_t>(amount % lanes_));
}

// Of the vectors for an amount and for the rest that it leaves, which may fall into more of them.
int64_t TileModel::widest(size_t axis, int64_t amount) const {
  return is_reduce(axis) ? pieces(amount) : std::max(pieces(amount), pieces(sizes_[axis] % amount));
}

int64_t TileModel::vectors_of_axis(size_t axis, int64_t amount) const {
  const int64_t rest = sizes_[axis] % amount;
  return sizes_[axis] / amount * pieces(amount) + pieces(rest);
}

// What it takes to copy an operand that is read again and again so that its elements along the
// lanes are neighbours; infinity where that does not pay.
double TileModel::pack_cost(const Item& item, const Tile& tile) const {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const size_t lanes = tile.vector_axis;
  if (item.kind != Item::Kind::Load || lanes == SIZE_MAX || lanes >= item.last ||
      is_reduce(lanes) || kernel_.caps->private_bytes == 0 || works_in_groups(*kernel_.caps))
    return kNever;
  double elements = 1, reuse = 1;
  bool sums = false;
  for (size_t a = 0; a < sizes_.size(); ++a) {
    if (item.stride[a] == kNear || item.stride[a] == kIrregular) return kNever;
    (item.stride[a] == 0 ? reuse : elements) *=
        is_reduce(a) && item.stride[a] == 0 ? 1 : static_cast<double>(sizes_[a]);
    sums |= is_reduce(a) && item.stride[a] != 0;
  }
  return sums && item.stride[lanes] > 1 && reuse >= kPackReuse ? elements * kPackCost : kNever;
}

// Of a store's elements, how many that are neighbours are stored together though lanes lie apart:
// copies of the axis that they are neighbours along; for a finished sum always some, since it may
// wait in scratch. A power of two.
int64_t TileModel::neighbours(const Item& item, const Tile& tile) const {
  const size_t lanes = tile.vector_axis;
  if (item.kind != Item::Kind::Store || lanes >= item.last || is_reduce(lanes) ||
      works_in_groups(*kernel_.caps))
    return 1;
  if (item.stride[lanes] == 1 || item.stride[lanes] == kNear || item.stride[lanes] == kIrregular)
    return 1;
  for (size_t a = 0; a < item.last; ++a) {
    if (item.stride[a] != 1) continue;
    const bool waits = has_reduce_ && kernel_.caps->private_bytes != 0;
    const int64_t copies =
        std::min({waits ? std::max<int64_t>(tile.amounts[a], kWaiting) : tile.amounts[a], sizes_[a],
                  lanes_});
    return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(copies)));
  }
  return 1;
}

// Shuffles and stores for each vector of such a store; 0 where its lanes are stored one by one.
double TileModel::transposing(const Item& item, const Tile& tile) const {
  const int64_t together = neighbours(item, tile);
  if (together == 1) return 0;
  return std::log2(static_cast<double>(together)) +
         static_cast<double>(lanes_) / static_cast<double>(together);
}

size_t TileModel::axis_beside_lanes(const Tile& tile) const {
  for (const Item& item : items_) {
    if (item.kind != Item::Kind::Store || tile.vector_axis >= item.last ||
        works_in_groups(*kernel_.caps))
      continue;
    for (size_t a = 0; a < item.last; ++a)
      if (a != tile.vector_axis && item.stride[a] == 1) return a;
  }
  return SIZE_MAX;
}

double TileModel::instructions(const Item& item, const Tile& tile) const {
  double count = 1, packing = pack_cost(item, tile), shuffles = transposing(item, tile);
  const bool packed = packing < std::numeric_limits<double>::infinity();
  for (size_t a = 0; a < item.last; ++a) {
    if (item.stride[a] == 0)
      count *= std::ceil(static_cast<double>(sizes_[a]) / static_cast<double>(tile.amounts[a]));
    else if (a != tile.vector_axis)
      count *= static_cast<double>(sizes_[a]);
    else if (item.stride[a] == 1 || packed)
      count *= static_cast<double>(vectors_of_axis(a, tile.amounts[a]));
    else if (shuffles > 0)
      count *= static_cast<double>(vectors_of_axis(a, tile.amounts[a])) * shuffles;
    else if (item.stride[a] == kNear)
      count *= static_cast<double>(vectors_of_axis(a, tile.amounts[a])) * kPickCost;
    else
      count *= static_cast<double>(sizes_[a]) * kLaneCost;
  }
  const bool memory = item.kind == Item::Kind::Load || item.kind == Item::Kind::Store;
  if (packed) return count * kLoadCost + packing;
  return memory ? count * kLoadCost : count;
}

double TileModel::accumulators(const Tile& tile) const {
  double total = 0;
  for (const Item& item : items_) {
    if (item.kind != Item::Kind::Accumulate) continue;
    double count = 1;
    for (size_t a = 0; a < sizes_.size(); ++a) {
      if (a == tile.vector_axis)
        count *= static_cast<double>(widest(a, tile.amounts[a]));
      else if (!is_reduce(a) && item.stride[a] != 0)
        count *= static_cast<double>(tile.amounts[a]);
    }
    total += count;
  }
  return total;
}

// Where items work in step their private memory is registers too, and how many there are is rarely
// told.
double TileModel::most_accumulators() const {
  const pgr_device_caps& caps = *kernel_.caps;
  if (!works_in_groups(caps)) return 0.8 * std::max(8u, caps.vector_registers);
  const double most = 0.8 * (caps.vector_registers == 0 ? 80 : caps.vector_registers);
  const double room = static_cast<double>(caps.private_bytes) / static_cast<double>(element_bytes_);
  return caps.private_bytes == 0 ? most : std::max(1.0, std::min(most, room));
}

double TileModel::copies(const Item& item, const Tile& tile) const {
  const double shuffles = transposing(item, tile);
  double count = std::max(shuffles, 1.0);
  for (size_t a = 0; a < sizes_.size(); ++a) {
    if (item.stride[a] == 0) continue;
    const bool lanes_apart = item.stride[a] != 1 && item.stride[a] != kNear && shuffles == 0;
    count *= static_cast<double>(a == tile.vector_axis && !lanes_apart ? pieces(tile.amounts[a])
                                                                       : tile.amounts[a]);
  }
  // Stores follow the loops, so that many of them are less of a burden.
  return item.kind == Item::Kind::Store ? count * kStoreCode : count;
}

double TileModel::code_size(const Tile& tile) const {
  double largest = 1;
  for (const Item& item : items_) largest = std::max(largest, copies(item, tile));
  return largest;
}

double TileModel::whole_code(const Tile& tile) const {
  double sum = 0;
  for (const Item& item : items_) sum += copies(item, tile);
  return sum;
}

int64_t TileModel::streams(const Tile& tile) const {
  int64_t most = 1;
  for (const Item& item : items_) {
    if (item.kind != Item::Kind::Load || std::ranges::count(item.stride, 0) != 0) continue;
    int64_t count = 1;
    for (size_t a = 0; a < sizes_.size(); ++a)
      if (a != tile.vector_axis && item.stride[a] != 1 && item.stride[a] != kNear)
        count *= tile.amounts[a];
    if (count > 1 && tile.vector_axis != SIZE_MAX && is_reduce(tile.vector_axis))
      count *= pieces(tile.amounts[tile.vector_axis]);
    most = std::max(most, count);
  }
  return most;
}

// Vectors that are transposed together where nothing is summed.
double TileModel::transposed_vectors(const Tile& tile) const {
  double most = 0;
  for (const Item& item : items_) {
    const int64_t together = has_reduce_ ? 1 : neighbours(item, tile);
    if (together > 1)
      most = std::max(most, static_cast<double>(together * pieces(tile.amounts[tile.vector_axis])));
  }
  return most;
}

double TileModel::cost(const Tile& tile) const {
  if (std::max(accumulators(tile), transposed_vectors(tile)) > most_accumulators())
    return std::numeric_limits<double>::infinity();
  double issued = 0, passes = 1, share = 1;
  bool conditions = false;
  for (const Bound& bound : bounds_) {
    if (holds(bound, tile))
      share *= bound.share;
    else
      conditions = true;
  }
  for (const Item& item : items_)
    if (conditions || bounds_.empty() || !item.is_condition) issued += instructions(item, tile);
  for (size_t a = 0; a < sizes_.size(); ++a)
    passes *= std::ceil(static_cast<double>(sizes_[a]) / static_cast<double>(tile.amounts[a]));
  if (has_reduce_) issued = std::max(issued, passes * kLatency);
  if (tile.vector_axis != SIZE_MAX && is_reduce(tile.vector_axis)) {
    double results = 1;
    for (size_t a = 0; a < sizes_.size(); ++a)
      if (!is_reduce(a)) results *= static_cast<double>(sizes_[a]);
    const double halvings =
        std::log2(static_cast<double>(std::min(lanes_, tile.amounts[tile.vector_axis])));
    issued += results * halvings * kHorizontalCost;
  }
  return (issued + passes * kLoopCost) * share;
}

double TileModel::iterations() const {
  double count = 1;
  for (int64_t size : sizes_) count *= static_cast<double>(size);
  return count;
}

bool TileModel::stores_neighbours(size_t axis) const {
  return std::ranges::all_of(items_, [&](const Item& item) {
    return item.kind != Item::Kind::Store || (axis < item.stride.size() && item.stride[axis] == 1);
  });
}

bool TileModel::reuses(size_t axis) const {
  size_t deepest = 0;
  for (const Item& item : items_) deepest = std::max(deepest, item.last);
  return std::ranges::any_of(items_, [&](const Item& item) {
    return item.kind == Item::Kind::Load && item.stride[axis] == 0 && item.last == deepest;
  });
}

// For one subgroup in every iteration: one line for each item where they are apart.
double TileModel::lines_moved(const Item& item, size_t axis) const {
  if (item.kind != Item::Kind::Load && item.kind != Item::Kind::Store) return 0;
  double count = 1;
  for (size_t a = 0; a < item.last; ++a) count *= static_cast<double>(sizes_[a]);
  const int64_t stride = axis < item.stride.size() ? item.stride[axis] : 0;
  if (stride == 0 || stride == 1) return count;
  return count * (stride == kNear ? 4.0 : static_cast<double>(kernel_.caps->subgroup_size));
}

size_t TileModel::cheapest_lanes(bool reduces) const {
  size_t best = SIZE_MAX;
  double least = std::numeric_limits<double>::infinity();
  for (size_t axis = sizes_.size(); axis-- > 0;) {
    if (is_reduce(axis) && !reduces) continue;
    double lines = 0;
    for (const Item& item : items_) lines += lines_moved(item, axis);
    // Few items along an axis leave most of the subgroup without neighbours.
    const auto items =
        static_cast<double>(std::min<int64_t>(sizes_[axis], kernel_.caps->subgroup_size));
    lines *= kernel_.caps->subgroup_size / items;
    if (lines < least * (is_reduce(axis) ? 0.5 : 1.0)) {
      best = axis;
      least = lines;
    }
  }
  return best;
}

}  // namespace plugrad::codegen
