// Chooses the order of elements of stored values in memory. Values that outlive the plan are
// row-major. In the others, the axis goes innermost along which the kernels that write and read
// them vectorise at least cost: one that all of them index plainly, e.g. channels. Axes that
// kernels cover with one loop are one class, which goes innermost in all values at once. Small
// operands with many reads are packed: stored once more, with the kernel's vectors innermost and
// the rest in the order of its loops.
#include <algorithm>
#include <bit>
#include <numeric>
#include <random>
#include <ranges>
#include <utility>

#include "schedule/layout/layout_cost.h"

namespace plugrad::schedule {
namespace {

constexpr int kLayoutRounds = 2;
// Vectors of a block. A register tile of two vectors and 6 rows, which fills 16 registers, needs
// less than one load for each multiply-add; one of a vector and 12 rows needs more.
constexpr int64_t kVectorsInBlock = 2;

class LayoutChooser {
 public:
  explicit LayoutChooser(SchedulerState& state)
      : state_(state), innermost_(state.graph.size(), kNoAxis), is_root_(state.graph.size(), 0) {
    for (Id root : state.roots) is_root_[root] = 1;
  }

  void run() {
    find_nests();
    if (state_.options.layout_seed != 0) return draw_lots();
    find_classes();
    for (int round = 0; round < kLayoutRounds; ++round) {
      bool changed = false;
      for (const Class* c : by_size()) changed = try_innermost(*c) || changed;
      if (!changed) break;
    }
    for (const LoopNest& nest : nests_) order_reductions(nest);
    if (!has_room()) return;
    for (const LoopNest& nest : nests_)  // codegen lays out the operands of blocked rows
      if (state_.in_blocks[nest.output] == 0) pack_operands(nest);
  }

 private:
  using AxisKey = std::pair<Id, uint32_t>;
  struct Class {
    std::vector<AxisKey> movable;
    std::vector<uint32_t> nests;
    int64_t elements = 0;
  };

  std::span<const int64_t> shape(Id node) { return state_.shapes[node]; }

  void find_nests() {
    for (Id id : state_.live) {
      if (state_.stored[id] == 0) continue;
      innermost_[id] = last_axis(id);
      const Op op = state_.graph[id].op;
      if (op == Op::Buffer || op == Op::Copy || op == Op::Collective || op == Op::UserKernel ||
          state_.counts[id] == 0)
        continue;
      nests_.push_back(loop_nest(state_, id));
      add_tiles(nests_.back(), state_.options.machine, state_.options.lanes);
      if (is_free(id)) make_class_of_axes(id);
    }
  }

  void draw_lots() {
    std::mt19937 lots(state_.options.layout_seed);
    const auto shuffled = [&](size_t size) {
      Dims order(size);
      std::iota(order.begin(), order.end(), 0);
      std::ranges::shuffle(order, lots);
      return order;
    };
    for (const LoopNest& nest : nests_) {
      if (is_free(nest.output)) state_.order[nest.output] = shuffled(shape(nest.output).size());
      for (const Loop& loop : nest.loops)
        if (loop.reduces)
          state_.loop_order[loop.owner] = shuffled(state_.graph.arg_list(loop.owner).size() - 1);
      for (const Access& r : nest.accesses) {
        if (state_.stored[r.view] != 0 || !has_room() || lots() % 2 == 0) continue;
        state_.stored[r.view] = 1;
        state_.order[r.view] = shuffled(shape(r.view).size());
        const int64_t last = shape(r.view)[static_cast<size_t>(state_.order[r.view].back())];
        if (last > 2 && last % 2 == 0 && lots() % 2 == 0) state_.blocks[r.view] = 2;
      }
    }
  }

  uint32_t last_axis(Id id) {
    const auto sizes = shape(id);
    for (size_t i = sizes.size(); i-- > 0;)
      if (sizes[i] != 1) return static_cast<uint32_t>(i);
    return kNoAxis;
  }

  /// Whether only the plan's kernels see the layout of the value.
  bool is_free(Id id) const {
    const auto raw = [&](Id c) {
      ++state_.visits;
      const Op op = state_.graph[c].op;
      return op == Op::Copy || op == Op::Collective || op == Op::UserKernel;
    };
    return is_root_[id] == 0 && std::ranges::none_of(state_.consumers.of(id), raw);
  }

  /// Every axis but the first, which threads share, of values with at least three axes longer than
  /// 1: so the channels of a single image may move, too.
  void make_class_of_axes(Id id) {
    const auto sizes = shape(id);
    if (std::ranges::count_if(sizes, [](int64_t size) { return size != 1; }) < 3) return;
    for (uint32_t i = 1; i < sizes.size(); ++i)
      if (sizes[i] != 1) movable_.insert({id, i});
  }

  AxisKey root_of(AxisKey key) {
    AxisKey root = key;
    for (auto it = parent_.find(root); it != parent_.end(); it = parent_.find(root))
      root = it->second;
    while (key != root) key = std::exchange(parent_[key], root);  // path compression
    return root;
  }

  void unite(AxisKey a, AxisKey b) {
    a = root_of(a);
    b = root_of(b);
    if (a != b) parent_[a] = b;
  }

  void find_classes() {
    for (const LoopNest& nest : nests_)
      for (const Access& r : nest.accesses)
        for (uint32_t i = 0; i < r.axes.size(); ++i) {
          if (!r.axes[i].plain || r.axes[i].loops == 0) continue;
          const Loop& loop = nest.loops[static_cast<size_t>(std::countr_zero(r.axes[i].loops))];
          unite({r.node, i}, {loop.owner, loop.axis});
        }
    for (uint32_t n = 0; n < nests_.size(); ++n) {
      std::set<Id> values = {nests_[n].output};
      for (const Access& r : nests_[n].accesses) values.insert(r.node);
      for (Id value : values) nests_of_[value].push_back(n);
    }
    for (const AxisKey& key : movable_) {
      Class& c = classes_[root_of(key)];
      c.movable.push_back(key);
      c.elements += state_.counts[key.first];
    }
    for (auto& [root, c] : classes_) find_nests_of(c);
  }

  void find_nests_of(Class& c) {
    std::set<uint32_t> nests;
    for (const AxisKey& key : c.movable)
      nests.insert(nests_of_[key.first].begin(), nests_of_[key.first].end());
    c.nests.assign(nests.begin(), nests.end());
  }

  std::vector<const Class*> by_size() const {
    std::vector<const Class*> all;
    for (const auto& [root, c] : classes_) all.push_back(&c);
    std::ranges::stable_sort(all, std::greater{}, &Class::elements);
    return all;
  }

  LayoutCost cost_of(const LoopNest& nest) const {
    state_.visits += nest.accesses.size();
    const bool packs =
        std::ranges::any_of(nest.bodies, [&](LoopSet b) { return b != nest.bodies[0]; });
    return {nest,
            innermost_,
            state_.options.machine,
            state_.options.lanes,
            packs,
            state_.options.cache_bytes};
  }

  std::vector<double> costs(std::span<const uint32_t> nests) const {
    std::vector<double> each;
    for (uint32_t n : nests) each.push_back(cost_of(nests_[n]).least());
    return each;
  }
  double total(std::span<const uint32_t> nests) const {
    const std::vector<double> each = costs(nests);
    return std::accumulate(each.begin(), each.end(), 0.0);
  }

  bool try_innermost(const Class& c) {
    const std::vector<double> before = costs(c.nests);
    std::vector<uint32_t> old;
    for (const auto& [node, axis] : c.movable) old.push_back(std::exchange(innermost_[node], axis));
    for (size_t i = 0; i < old.size(); ++i) keep_if_cheaper(c.movable[i].first, old[i]);
    const bool moves = !std::ranges::all_of(std::views::iota(size_t{0}, old.size()), [&](size_t i) {
      return innermost_[c.movable[i].first] == old[i];
    });
    if (moves && pays(before, costs(c.nests))) {
      for (const auto& [node, axis] : c.movable)
        if (innermost_[node] == axis) move_inwards(node, axis);
      return true;
    }
    for (size_t i = 0; i < old.size(); ++i) innermost_[c.movable[i].first] = old[i];
    return false;
  }

  /// Restores the axis of a value that would cost more with the axis of its class.
  void keep_if_cheaper(Id node, uint32_t old) {
    const auto nests = nests_of_.find(node);
    if (innermost_[node] == old || nests == nests_of_.end()) return;
    const double moved = total(nests->second);
    const uint32_t axis = std::exchange(innermost_[node], old);
    if (total(nests->second) >= moved) innermost_[node] = axis;
  }

  static bool pays(std::span<const double> before, std::span<const double> after) {
    double was = 0, is = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      if (before[i] == after[i]) continue;
      was += before[i];
      is += after[i];
    }
    return is < was;
  }

  Dims row_major(Id node) {
    Dims order(shape(node).size());
    std::iota(order.begin(), order.end(), 0);
    return order;
  }

  void move_inwards(Id node, uint32_t axis) {
    Dims order = row_major(node);
    std::erase(order, int64_t{axis});
    order.push_back(axis);
    state_.order[node] = order;
  }

  void order_reductions(const LoopNest& nest) {
    const LayoutCost cost = cost_of(nest);
    const size_t lane = cost.best_loop();
    for (LoopSet around : nest.bodies) {
      const size_t inner = cost.inner_loop(around, lane);
      if (inner == nest.loops.size()) continue;
      const auto list = state_.graph.arg_list(nest.loops[inner].owner).subspan(1);
      Dims order(list.size());
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_partition(
          order, [&](int64_t i) { return list[static_cast<size_t>(i)] != nest.loops[inner].axis; });
      if (!std::ranges::is_sorted(order)) state_.loop_order[nest.loops[inner].owner] = order;
    }
  }

  void pack_operands(const LoopNest& nest) {
    const LayoutCost cost = cost_of(nest);
    const size_t lane = cost.best_loop();
    if (lane == nest.loops.size()) return;
    for (const Access& r : nest.accesses) {
      if (state_.stored[r.view] == 0 && cost.pays_packed(r, lane)) {
        state_.stored[r.view] = 1;
        state_.order[r.view] = packed_order(nest, r, lane);
        if (r.is_constant && stores_along(nest, lane)) cut_into_blocks(r.view);
      } else if (state_.stored[r.view] == 0 && cost.pays_cast_copy(r, lane)) {
        store_cast_copy(r);
      }
    }
  }

  /// Whether vectors along the loop are stored contiguously: then codegen does not split the loop.
  bool stores_along(const LoopNest& nest, size_t lane) const {
    const Loop& loop = nest.loops[lane];
    return loop.owner == nest.output && innermost_[nest.output] == loop.axis && !loop.reduces;
  }

  /// Blocks as wide as a register tile, so that a tile reads its weights contiguously. Otherwise
  /// they lie a row's length apart, and the kernel copies them for each tile in every run.
  void cut_into_blocks(Id node) {
    const int64_t block = kVectorsInBlock * int64_t{state_.options.lanes};
    const int64_t size = shape(node)[static_cast<size_t>(state_.order[node].back())];
    if (size > block && size % block == 0) state_.blocks[node] = block;
  }

  void store_cast_copy(const Access& r) {
    state_.stored[r.cast_copy] = 1;
    state_.order[r.cast_copy] = cast_copy_order(r, state_.order);
  }

  /// Whether every kernel may take a few buffers more: one may read a value both packed and as
  /// stored.
  bool has_room() const {
    return std::ranges::all_of(nests_, [&](const LoopNest& nest) {
      std::set<Id> values;
      for (const Access& r : nest.accesses) values.insert(r.node);
      return 2 * values.size() + 2 <= state_.options.max_params;
    });
  }

  /// Axes in the order of the loops that cover them, the vectorised one innermost.
  Dims packed_order(const LoopNest& nest, const Access& r, size_t lane) {
    const auto position = [&](int64_t axis) -> int64_t {
      const LoopSet loops = r.view_axes[static_cast<size_t>(axis)].loops;
      if (loops == 0) return -1;
      const auto number = static_cast<size_t>(std::countr_zero(loops));
      return number == lane ? INT64_MAX : position_of_loop(nest, number);
    };
    Dims order(r.view_axes.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, position);
    return order;
  }

  int64_t position_of_loop(const LoopNest& nest, size_t number) {
    const Loop& loop = nest.loops[number];
    const auto order = state_.loop_order.find(loop.owner);
    if (!loop.reduces || order == state_.loop_order.end()) return static_cast<int64_t>(number);
    const auto list = state_.graph.arg_list(loop.owner).subspan(1);
    const auto position = std::ranges::find(list, int64_t{loop.axis}) - list.begin();
    const auto rank = std::ranges::find(order->second, position) - order->second.begin();
    return static_cast<int64_t>(nest.loops.size()) + rank;
  }

  SchedulerState& state_;
  Innermost innermost_;
  std::vector<uint8_t> is_root_;  // by id
  std::vector<LoopNest> nests_;
  std::set<AxisKey> movable_;
  std::map<AxisKey, AxisKey> parent_;
  std::map<AxisKey, Class> classes_;
  std::map<Id, std::vector<uint32_t>> nests_of_;  // nests that write or read the value
};

}  // namespace

void choose_layouts(SchedulerState& state) {
  if (state.options.lanes > 1 || state.options.layout_seed != 0) LayoutChooser(state).run();
}

}  // namespace plugrad::schedule
