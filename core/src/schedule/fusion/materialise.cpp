// Chooses the values that get memory (materialisation): roots, contiguous values, both ends of
// copies, one value for each Reduce (fusion_roots.cpp), and values that cost more to recompute than
// to store.
#include <algorithm>

#include "schedule/fusion/cost.h"
#include "schedule/fusion/store_cost.h"

namespace plugrad::schedule {
namespace {

// Recomputation in several kernels: limits on the weight and on the stored values read.
constexpr uint32_t kCheapWeight = 16, kCheapLeaves = 3;
// Recomputation for every read of an operand of a matmul or convolution: reads of each element, and
// limits on the weight.
constexpr float kManyReads = 8, kVeryManyReads = 32;
constexpr uint32_t kOperandWeight = 24, kTrivialWeight = 2, kMaskWeight = 48;
// Total reads from which a padded operand is stored with its padding: the loops of its kernel then
// need no conditions.
constexpr float kPaddingPays = 1 << 20;
constexpr float kFewTimes = 4;  // evaluations of an element of a light Reduce that may be repeated
constexpr float kRepeated = 1.01f;  // more than once, whatever the rounding
constexpr int kMaterialiseRounds = 4;

}  // namespace

/// The state of the stages of materialisation; each stage is one function.
class Materialiser {
 public:
  explicit Materialiser(SchedulerState& state)
      : state_(state),
        demand_(state.graph.size()),
        regions_(state),
        cost_(state),
        repeated_(state.graph.size(), 0) {}

  void store_required() {
    for (Id id : state_.live)
      if (must_store(id)) state_.stored[id] = 1;
  }

  void materialise() {
    for (int round = 0; round < kMaterialiseRounds; ++round) {
      bool changed = store_operands();
      repeat_light_reductions();
      changed = store_shared() || changed;
      if (!changed) break;
    }
  }

  /// Storing a value to keep to a limit may leave a Reduce in several kernels.
  void limit_all() {
    while (limit_kernels(state_) | limit_work(state_) | limit_evaluations(state_) |
           store_shared_reductions()) {
    }
  }

  /// Consumers first: nodes that the kernel of a row's sum computes move with the sum.
  void fuse_row_reductions() {
    for (size_t i = state_.live.size(); i-- > 0;) {
      const Id id = state_.live[i];
      demand_.update(state_, id);
      if (state_.stored[id] == 0 || state_.indexed[id] != 0 ||
          computes_in_blocks(state_, demand_, id))
        continue;
      if (!computes_once(state_, demand_, id)) continue;
      state_.stored[id] = 0;
      state_.of_rows[id] = 1;
      demand_.update(state_, id);
    }
  }

  /// Finds values that two kernels compute to compare them, e.g. a maximum and its index. Results
  /// are bitwise comparable only if both kernels contract the same multiply-adds.
  void find_bitwise_comparable() {
    const Graph& g = state_.graph;
    for (Id id : state_.live) {
      if (g[id].op != Op::CmpEq && g[id].op != Op::CmpNe) continue;
      if (is_number(g, g[id].src[0]) || is_number(g, g[id].src[1])) continue;
      for (Id side : g.sources(id)) {
        while (is_movement(g[side].op) && state_.stored[side] == 0) side = g[side].src[0];
        if (state_.stored[side] == 0 && demand_.kernel[side] == Demand::kMany && may_contract(side))
          state_.bitwise_comparable[side] = 1;
      }
    }
  }

 private:
  bool must_store(Id id) const {
    const Op op = state_.graph[id].op;
    return op == Op::Buffer || op == Op::Contiguous || op == Op::Copy || op == Op::Collective ||
           op == Op::UserKernel || state_.requested[id] != 0 || state_.indexed[id] != 0;
  }

  /// E.g. the counts of equal maxima of pooling: sums of four elements that the kernels read
  /// anyway.
  void repeat_light_reductions() {
    for (size_t i = state_.live.size(); i-- > 0;) {
      const Id id = state_.live[i];
      demand_.update(state_, id);
      if (state_.stored[id] == 0 || must_store(id) || demand_.ratio[id] > kFewTimes) continue;
      const std::vector<Id> reductions = light_reductions_below(state_, id);
      if (reductions.empty() || cost_.pays(id)) continue;
      state_.stored[id] = 0;
      for (Id reduce : reductions) repeated_[reduce] = 1;
      demand_.update(state_, id);
    }
  }

  /// Consumers first: storing a value changes the cost of the values below it.
  bool store_operands() {
    bool changed = false;
    for (size_t i = state_.live.size(); i-- > 0;) {
      const Id id = state_.live[i];
      demand_.update(state_, id);
      if (state_.stored[id] != 0 || state_.is_for_rows(id) || !pays_as_operand(id)) continue;
      state_.stored[id] = 1;
      demand_.update(state_, id);
      changed = true;
    }
    return changed;
  }

  bool pays_as_operand(Id id) {
    const float ratio = demand_.ratio[id];
    const Op op = state_.graph[id].op;
    if (ratio < kManyReads || (op != Op::Pad && !is_alu(op))) return false;
    if (compares_with_counter(id)) return false;
    const Region region = regions_.below(id);
    if (state_.constant[id] != 0 && is_alu(op) && region.weight > kTrivialWeight) return true;
    // A mask depends on indices only: loops compute parts of it.
    const bool is_mask = state_.graph[id].dtype == DType::Bool;
    if (region.leaf_count == 0 && region.weight <= (is_mask ? kMaskWeight : kCheapWeight))
      return false;
    if (demand_.operand[id] == 0) return is_alu(op) && region.weight > kCheapWeight;
    if (op == Op::Pad)
      return !is_left_out(id) && ratio * static_cast<float>(state_.counts[id]) >= kPaddingPays;
    if (region.has_iota && region.leaf_count <= 1 && region.weight <= kCheapWeight) return false;
    if (ratio >= kVeryManyReads) return region.weight > kTrivialWeight || region.leaf_count > 1;
    return region.weight > kOperandWeight || region.leaf_count > kCheapLeaves;
  }

  /// Whether sums skip the padding: loops then only run over the rest.
  bool is_left_out(Id id) const {
    const Graph& g = state_.graph;
    return std::ranges::all_of(state_.consumers.of(id), [&](Id by) {
      ++state_.visits;
      if (is_movement(g[by].op)) return is_left_out(by);
      return g[by].op == Op::Mul && std::ranges::all_of(state_.consumers.of(by), [&](Id choice) {
               const Node& n = g[choice];
               return n.op == Op::Where && n.src[1] == by && is_const(g, n.src[2]) &&
                      const_float(g, n.src[2]) == 0;
             });
    });
  }

  /// Whether the value compares data with a counter: it has more elements than either side, and a
  /// sum that it selects for becomes one load. Its operands may be stored.
  bool compares_with_counter(Id id) const {
    const Graph& g = state_.graph;
    if (!is_compare(g[id].op)) return false;
    return std::ranges::any_of(g.sources(id), [&](Id side) {
      while (is_movement(g[side].op) || g[side].op == Op::Cast) side = g[side].src[0];
      return g[side].op == Op::Iota;
    });
  }

  /// Sources first: a stored value makes the values above it cheap.
  bool store_shared() {
    bool changed = false;
    for (Id id : state_.live) {
      if (state_.stored[id] != 0 || demand_.kernel[id] != Demand::kMany || !is_compute(id) ||
          state_.is_for_rows(id))
        continue;
      const Region region = regions_.below(id);
      if (region.weight <= kCheapWeight && region.leaf_count <= kCheapLeaves) continue;
      if (!cost_.pays(id)) continue;
      state_.stored[id] = 1;
      changed = true;
    }
    return changed;
  }

  bool store_shared_reductions() {
    bool changed = false;
    for (size_t i = state_.live.size(); i-- > 0;) {
      const Id id = state_.live[i];
      demand_.update(state_, id);
      if (state_.stored[id] != 0 || repeated_[id] != 0 || state_.graph[id].op != Op::Reduce)
        continue;
      if (demand_.kernel[id] != Demand::kMany && demand_.ratio[id] < kRepeated) continue;
      state_.stored[id] = 1;
      demand_.update(state_, id);
      changed = true;
    }
    return changed;
  }

  /// Whether the kernel of `root` adds to a product that it computes.
  bool may_contract(Id root) const {
    const Graph& g = state_.graph;
    Reachable& reachable = state_.reachable;
    const auto is_read = [&](Id id) { return state_.stored[id] != 0; };
    const auto is_product = [&](Id s) {
      while (is_movement(g[s].op) && !is_read(s)) s = g[s].src[0];
      return g[s].op == Op::Mul && !is_read(s);
    };
    return std::ranges::any_of(reachable.from(g, std::span(&root, 1), is_read), [&](Id id) {
      ++state_.visits;
      const bool adds = g[id].op == Op::Add || g[id].op == Op::Sub;
      return adds && is_float(g[id].dtype) && !is_read(id) &&
             std::ranges::any_of(g.sources(id), is_product);
    });
  }

  bool is_compute(Id id) const {
    return is_alu(state_.graph[id].op) || state_.graph[id].op == Op::Reduce;
  }

  SchedulerState& state_;
  Demand demand_;
  RegionFinder regions_;
  StoreCost cost_;
  std::vector<uint8_t> repeated_;  // Reduces recomputed by every kernel that reads them
};

void store_required(SchedulerState& state) {
  state.stored.assign(state.graph.size(), 0);
  state.like_matmul.assign(state.graph.size(), 0);
  state.of_rows.assign(state.graph.size(), 0);
  state.in_blocks.assign(state.graph.size(), 0);
  state.bitwise_comparable.assign(state.graph.size(), 0);
  state.ends_kernel.assign(state.graph.size(), 0);
  state.materialiser = std::make_shared<Materialiser>(state);
  state.materialiser->store_required();
}

void materialise(SchedulerState& state) {
  state.materialiser->materialise();
}

void fuse_row_reductions(SchedulerState& state) {
  state.materialiser->fuse_row_reductions();
}

void store_blocks(SchedulerState& state) {
  store_repeated_blocks(state);
}

void limit_all(SchedulerState& state) {
  state.materialiser->limit_all();
}

void find_bitwise_comparable(SchedulerState& state) {
  state.materialiser->find_bitwise_comparable();
  state.materialiser.reset();
}

}  // namespace plugrad::schedule
