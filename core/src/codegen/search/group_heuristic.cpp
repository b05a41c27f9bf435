// The heuristic for devices with lockstep work-items. In order: the axis of adjacent work-items,
// the register tile, sharing of reductions, the group size, copies into local memory; all remaining
// loops become group ids.
#include <algorithm>
#include <bit>
#include <limits>

#include "codegen/search/heuristic.h"
#include "codegen/tiling/row_kernels.h"
#include "codegen/transforms/transforms.h"

namespace plugrad::codegen {
namespace {

using Kind = ScheduleStep::Kind;

// No card was available: all of these are chosen, not measured (docs/performance.md, "Other
// devices").
constexpr double kMostGroupCode = 64;  // copies of one instruction
constexpr int64_t kStepsToFill = 8;    // subgroups that fill a multiprocessor
// Iterations of a shared reduction for each work-item, at least.
constexpr int64_t kShortestShare = 4;
// Iterations; sharing shorter reductions does not pay for the barriers.
constexpr int64_t kShortReduction = 64;
constexpr double kShareCost = 8;     // instructions that a work-item adds to a shared reduction
constexpr int64_t kElementwise = 4;  // elements of a work-item in kernels without reuse

// The largest divisor of `size` up to `amount`.
int64_t divisor(int64_t size, int64_t amount) {
  while (size % amount != 0) --amount;
  return amount;
}

// The work-items of an axis, at most `most`, that leave the fewest idle at its end and a number of
// rounds that `amount` divides; whole subgroups are preferred.
int64_t fitting_items(int64_t size, int64_t amount, int64_t most, int64_t subgroup) {
  if (ceil_div(size, amount) <= most) return ceil_div(size, amount);
  int64_t best = most;
  double best_share = 0;
  for (int64_t items = most; items > most / 2; --items) {
    const int64_t rounds = ceil_div(size, items), upcast = divisor(rounds, amount);
    double share = static_cast<double>(size) / static_cast<double>(rounds * items);
    share *= static_cast<double>(upcast) / static_cast<double>(amount);
    if (items % std::min(subgroup, most) != 0) share *= 0.9;
    if (share > best_share * 1.001) {
      best = items;
      best_share = share;
    }
  }
  return best;
}

// The work-items, at most `most`, that share a loop: all iterations of a short loop, otherwise a
// divisor, because a remainder is a second copy of the loop's body.
int64_t sharing_items(int64_t size, int64_t most) {
  if (size <= most) return size;
  for (int64_t items = most; items > most / 2; --items)
    if (size % items == 0) return items;
  return floor_power(most);
}

// Choices for one store, by axis numbers, which steps keep.
class StoreChooser {
 public:
  StoreChooser(Kernel& part, const std::vector<uint32_t>& taken)
      : part_(part),
        caps_(*part.caps),
        model_(part),
        taken_(taken),
        none_{std::vector<int64_t>(part.axes.size(), 1)},
        tile_(none_) {}

  std::vector<std::pair<uint32_t, ScheduleStep>> run() {
    find_tile();
    lanes_ = model_.cheapest_lanes(!has_reuse_ || outputs() * 4 < enough());
    const int64_t team = team_size();
    if (!lanes_reduce()) share_reductions(team);
    spread_outputs(std::max(group_size(team) / team, neighbours()));
    if (lanes_reduce()) share_reductions(team);
    upcast();
    unroll();
    return std::move(changes_);
  }

 private:
  int64_t subgroup() const { return caps_.subgroup_size; }
  int64_t enough() const { return kStepsToFill * subgroup() * std::max(1u, caps_.threads); }
  uint32_t number(size_t axis) const { return range_axis(part_.graph[part_.axes[axis]]); }
  int64_t size(size_t axis) const { return size_of_axis(part_, axis); }
  bool is_output(size_t axis) const { return kind_of(part_, axis) == AxisKind::Loop; }
  void change(Kind kind, size_t axis, int64_t amount) {
    const bool is_taken = std::ranges::find(taken_, number(axis)) != taken_.end();
    if (amount > 1 && !is_taken && may_split(part_, axis))
      changes_.emplace_back(number(axis), ScheduleStep{kind, 0, amount});
  }

  int64_t product(bool outputs, const Tile& tile) const {
    int64_t count = 1;
    for (size_t axis = 0; axis < part_.axes.size(); ++axis)
      if (is_output(axis) == outputs) count *= ceil_div(size(axis), tile.amounts[axis]);
    return count;
  }
  int64_t outputs() const { return product(true, tile_); }

  bool lanes_reduce() const { return lanes_ < part_.axes.size() && !is_output(lanes_); }

  // Adjacent work-items along an output axis.
  int64_t neighbours() const {
    const int64_t most = std::min<int64_t>(subgroup(), caps_.max_local_total);
    return lanes_ < part_.axes.size() && !lanes_reduce() ? std::min(size(lanes_), most) : 1;
  }

  // Work-items that share one reduction: more if the tile leaves too few outputs to fill the
  // device.
  int64_t team_for(const Tile& tile) const {
    const int64_t length = product(false, tile),
                  most = std::min<int64_t>(kWorkItems, caps_.max_local_total);
    if (!model_.has_reduce() || length < kShortReduction) return 1;
    const int64_t longest = std::min(floor_power(length / kShortestShare), floor_power(most));
    const auto wanted = static_cast<uint64_t>(ceil_div(enough(), product(true, tile)));
    return std::min(static_cast<int64_t>(std::bit_ceil(wanted)), longest);
  }

  // Instructions, including those of sharing, scaled up if too few work-items remain to fill the
  // device.
  double cost(const Tile& tile) const {
    if (model_.code_size(tile) > kMostGroupCode) return std::numeric_limits<double>::infinity();
    const auto team = static_cast<double>(team_for(tile));
    const double shared =
        team > 1 ? static_cast<double>(product(true, none_)) * team * kShareCost : 0;
    const double items = static_cast<double>(product(true, tile)) * team;
    return (model_.cost(tile) + shared) * std::max(1.0, static_cast<double>(enough()) / items);
  }

  void find_tile() {
    std::vector<size_t> axes = tile_axes(part_, model_, tile_);
    has_reuse_ = !axes.empty();
    if (axes.size() > 2) axes.resize(2);
    LaneChoice best{tile_, cost(tile_)};
    const TileSearch tiles{part_, model_, false, [&](const Tile& t, double) { return cost(t); }};
    tiles.choose(axes, tile_, best);
    tile_ = best.tile;
  }

  // At least a subgroup if its work-items then read consecutive elements.
  int64_t team_size() const {
    int64_t team = team_for(tile_);
    const int64_t line = static_cast<int64_t>(std::max<uint64_t>(caps_.cache_line_bytes, 64));
    if (lanes_reduce() && subgroup() * model_.element_bytes() >= line) {
      const int64_t most = floor_power(product(false, tile_) / kShortestShare);
      team = std::max(team, std::min(subgroup(), most));
    }
    team = std::min(
        team, floor_power(std::min<int64_t>(kWorkItems, caps_.max_local_total) / neighbours()));
    return team < 4 ? 1 : team;
  }

  // Work-items of a group: fewer if some multiprocessors would finish much later than others.
  int64_t group_size(int64_t team) const {
    const int64_t most = std::min<int64_t>(kWorkItems, caps_.max_local_total);
    const int64_t even = floor_power(outputs() * team / (2 * std::max(1u, caps_.threads)));
    return std::min(std::max({even, team, subgroup()}), most);
  }

  // Shares reduce axes: first the one with consecutive reads, then the longest.
  void share_reductions(int64_t team) {
    std::vector<size_t> axes;
    for (size_t axis = 0; axis < part_.axes.size(); ++axis)
      if (!is_output(axis)) axes.push_back(axis);
    std::ranges::stable_sort(axes, std::greater{},
                             [&](size_t axis) { return std::pair(axis == lanes_, size(axis)); });
    std::reverse(axes.begin(), axes.end());
    std::vector<std::pair<size_t, int64_t>> shares;
    while (!axes.empty() && team > 1) {
      const size_t axis = axes.back();
      axes.pop_back();
      const int64_t items = sharing_items(size(axis), team);
      if (items < 2) continue;
      shares.emplace_back(axis, items);
      tile_.amounts[axis] = items;  // the remaining iterations, to unroll
      team /= items;
    }
    for (auto it = shares.rbegin(); it != shares.rend(); ++it)
      change(Kind::Group, it->first, it->second);
  }

  // Spreads the axis of adjacent work-items last, so that it is axis 0 of the group. In a register
  // tile its work-items are one subgroup, and the others go along the other axis.
  void spread_outputs(int64_t items) {
    std::vector<size_t> axes;
    for (size_t axis = 0; axis < part_.axes.size(); ++axis)
      if (is_output(axis) && axis != lanes_) axes.push_back(axis);
    std::ranges::stable_sort(axes, {}, [&](size_t axis) { return tile_.amounts[axis] > 1; });
    if (lanes_ < part_.axes.size() && is_output(lanes_)) axes.push_back(lanes_);
    std::vector<std::pair<size_t, int64_t>> locals;
    for (; !axes.empty() && locals.size() < 3 && items > 1; axes.pop_back()) {
      const size_t axis = axes.back();
      const bool first_of_tile = locals.empty() && has_reuse_ && axes.size() > 1;
      const int64_t most =
          first_of_tile ? std::min(items, std::max<int64_t>(subgroup(), 16)) : items;
      const int64_t taken = fitting_items(size(axis), tile_.amounts[axis], most, subgroup());
      locals.emplace_back(axis, taken);
      items /= taken;
    }
    for (auto it = locals.rbegin(); it != locals.rend(); ++it) {
      const auto [axis, taken] = *it;
      change(Kind::Local, axis, taken);
      rounds_.emplace_back(axis, ceil_div(size(axis), taken));
    }
  }

  int64_t rounds(size_t axis) const {
    const auto it = std::ranges::find(rounds_, axis, &std::pair<size_t, int64_t>::first);
    return it == rounds_.end() ? size(axis) : it->second;
  }

  // After the work-items, so that adjacent ones stay adjacent; only divisors.
  void upcast() {
    if (!model_.has_reduce() && lanes_ < part_.axes.size()) {
      const int64_t left = outputs() / std::max<int64_t>(enough(), 1);
      tile_.amounts[lanes_] = std::clamp<int64_t>(left / 4, 1, kElementwise);
    }
    for (size_t axis = 0; axis < part_.axes.size(); ++axis) {
      if (!is_output(axis)) continue;
      const int64_t amount = divisor(rounds(axis), std::min(tile_.amounts[axis], rounds(axis)));
      tile_.amounts[axis] = amount;
      change(Kind::Upcast, axis, amount);
    }
  }

  void unroll() {
    for (size_t axis = part_.axes.size(); axis-- > 0;) {
      if (is_output(axis)) continue;
      const int64_t left = size(axis) / tile_.amounts[axis];
      tile_.amounts[axis] = left <= 8 ? left : left % 4 == 0 ? 4 : 1;
      if (model_.code_size(tile_) > kMostGroupCode) return;
      change(Kind::Unroll, axis, tile_.amounts[axis]);
    }
  }

  Kernel& part_;
  const pgr_device_caps& caps_;
  const CostModel model_;
  const std::vector<uint32_t>& taken_;
  const Tile none_;
  Tile tile_;
  bool has_reuse_ = false;
  bool is_short_ = false;    // whether outputs are too few to fill the device
  size_t lanes_ = SIZE_MAX;  // the axis of adjacent work-items
  std::vector<std::pair<size_t, int64_t>> rounds_;  // by axis: iterations left by its work-items
  std::vector<std::pair<uint32_t, ScheduleStep>> changes_;
};

void apply_by_number(Kernel& kernel, uint32_t axis_number, ScheduleStep change) {
  const size_t axis = axis_with_number(kernel, axis_number);
  if (axis == kernel.axes.size()) return;
  change.axis = static_cast<uint32_t>(axis);
  if (change.kind == Kind::Local || change.kind == Kind::Group)
    apply_if_it_fits(kernel, change);
  else
    apply(kernel, change);
}

// Only axes common to all stores' rows may be parallelised: otherwise each group would reduce all
// rows again.
void add_groups(Kernel& kernel, const std::vector<std::vector<uint32_t>>& rows = {}) {
  const auto allows = [&](uint32_t number) {
    return std::ranges::all_of(
        rows, [&](const auto& axes) { return std::ranges::find(axes, number) != axes.end(); });
  };
  for (size_t axis; (axis = outermost_loop(kernel, allows)) < kernel.axes.size();)
    if (!apply_thread(kernel, axis)) return;
}

// Copies into local memory follow the steps that make the group and precede those that expand the
// reductions.
void apply_changes(Kernel& kernel, std::vector<std::pair<uint32_t, ScheduleStep>> changes,
                   bool may_stage) {
  const auto unrolled = std::ranges::stable_partition(
      changes, [](const auto& entry) { return entry.second.kind != Kind::Unroll; });
  for (auto it = changes.begin(); it != unrolled.begin(); ++it)
    apply_by_number(kernel, it->first, it->second);
  if (may_stage && cache_read_tiles(kernel)) return;
  for (const auto& [number, change] : unrolled) apply_by_number(kernel, number, change);
}

}  // namespace

void apply_group_heuristic(Kernel& kernel) {
  if (apply_tensor_core_heuristic(kernel)) return add_groups(kernel);
  std::vector<Kernel> stores;
  for (Id store : kernel.graph.sources(kernel.sink)) stores.push_back(part_of(kernel, store));
  std::ranges::stable_sort(stores, std::greater{}, iterations_of);  // larger stores choose first
  std::vector<uint32_t> taken;
  std::vector<std::vector<uint32_t>> rows;  // axes of the stores that have rows
  for (Kernel& store : stores) {
    Kernel copy = copy_of(store);
    const RowKernels parts = row_kernels(copy);
    std::vector<std::pair<uint32_t, ScheduleStep>> changes;
    if (!parts.parts.empty()) {
      rows.push_back(parts.row_axes);
      if (stores.size() == 1) changes = choose_workgroup_per_row(store, parts.row_axes);
    }
    if (changes.empty()) changes = StoreChooser(store, taken).run();
    apply_changes(kernel, std::move(changes), stores.size() == 1 && rows.empty());
    for (Id axis : store.axes) taken.push_back(range_axis(store.graph[axis]));
  }
  add_groups(kernel, rows);
}

}  // namespace plugrad::codegen
