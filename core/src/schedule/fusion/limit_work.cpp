// Cuts kernels that would compute too much for one element: compile time grows faster than a kernel
// does. A kernel gets the nodes up to one position in the order of the graph; values among them
// that later nodes need are stored unless they are cheap.
//   before   y = sin(y * w) + x, n times, and its gradient, in one kernel
//   after    kernels of some iterations each, which read the values stored by those before
// Equal parts are cut equally, so that few kernels are compiled.
#include <algorithm>

#include "schedule/fusion/cost.h"

namespace plugrad::schedule {
namespace {

// Instructions that cost as much as to write a value, read it and keep it in the cache: 12 bytes at
// four operations a byte (StoreCost).
constexpr uint32_t kWorthStoring = 48;

// Instructions of a reduce loop: a kernel has at most 128 ranges (codegen/analysis/access.h), up to
// 16 of them for its output.
constexpr uint32_t kLoop = kMostInstructions / 112 + 1;

class WorkLimiter {
 public:
  explicit WorkLimiter(SchedulerState& state)
      : state_(state),
        g_(state.graph),
        most_(g_.size(), 0),
        base_(g_.size(), kNoId),
        behind_(g_.size(), 0),
        needed_(g_.size(), kNoId),
        epoch_of_(g_.size(), 0) {}

  bool run() {
    for (Id id : state_.live) {
      if (g_[id].op == Op::Buffer || g_[id].op == Op::UserKernel || g_[id].op == Op::Copy ||
          g_[id].op == Op::Collective)
        continue;
      estimate(id);
      if (most_[id] <= kMostInstructions) continue;
      count(id);
      if (most_[id] <= kMostInstructions || instructions_of(g_, g_[id]) == 0) continue;
      cut_before(id);
      count(id);
    }
    return stored_any_;
  }

 private:
  /// Sets an upper bound of the node's work. If all sources that are not cheap follow from one
  /// counted node, they compute only that node and later ones; otherwise nodes that two sources
  /// need count twice.
  void estimate(Id id) {
    uint64_t own = instructions_of(g_, g_[id]), sum = own;
    Id base = kNoId;
    bool has_one = true;
    for (Id s : g_.sources(id)) {
      if (state_.stored[s] != 0) continue;
      sum += most_[s];
      if (most_[s] < kWorthStoring) {
        own += most_[s];
        continue;
      }
      has_one = has_one && (base == kNoId || base == base_[s]);
      base = base_[s];
    }
    behind_[id] = total_ += own;
    const bool follows = has_one && base != kNoId;
    if (follows) sum = std::min(sum, most_[base] + total_ - behind_[base]);
    most_[id] = static_cast<uint32_t>(std::min<uint64_t>(sum, UINT32_MAX));
    base_[id] = follows ? base : id;
  }

  void count(Id id) {
    most_[id] = work_below(id, UINT32_MAX);
    base_[id] = id;
  }

  /// Instructions to compute `id`; stops counting above `enough`.
  uint32_t work_below(Id id, uint32_t enough) {
    ++epoch_;
    region_.assign(1, id);
    epoch_of_[id] = epoch_;
    uint32_t work = 0;
    for (size_t next = 0; next < region_.size() && work <= enough; ++next) {
      const Id at = region_[next];
      ++state_.visits;
      work += instructions_of(g_, g_[at]);
      for (Id s : g_.sources(at)) reach(s);
    }
    return work;
  }

  void reach(Id id) {
    if (state_.stored[id] != 0 || epoch_of_[id] == epoch_) return;
    epoch_of_[id] = epoch_;
    region_.push_back(id);
  }

  void cut_before(Id end) {
    const std::vector<Id> part = part_of(end);
    for (auto id = part.rbegin(); id != part.rend(); ++id)
      needed_[*id] = is_needed_from(*id, end) ? end : kNoId;
    for (Id id : part)
      if (needed_[id] == end && is_worth_storing(id, end)) {
        state_.stored[id] = 1;
        state_.ends_kernel[id] = 1;
        stored_any_ = true;
      }
  }

  /// The values that `end` needs, and earlier ones computed from those, in ascending order.
  std::vector<Id> part_of(Id end) {
    work_below(end, UINT32_MAX);
    for (size_t next = 0; next < region_.size(); ++next)
      if (most_[region_[next]] >= kWorthStoring)
        for (Id c : state_.consumers.of(region_[next])) {
          ++state_.visits;
          if (c < end) reach(c);
        }
    std::vector<Id> part = region_;
    std::erase(part, end);
    std::ranges::sort(part);
    return part;
  }

  /// By `end` or a later node, directly or through views.
  bool is_needed_from(Id id, Id end) const {
    return std::ranges::any_of(state_.consumers.of(id), [&](Id c) {
      return c >= end || (is_movement(g_[c].op) && state_.stored[c] == 0 && needed_[c] == end);
    });
  }

  bool is_worth_storing(Id id, Id end) {
    const Op op = g_[id].op;
    return (is_alu(op) || op == Op::Reduce) && state_.of_rows[id] == 0 && !state_.is_for_rows(id) &&
           state_.counts[id] <= state_.counts[end] &&
           work_below(id, kWorthStoring) >= kWorthStoring;
  }

  SchedulerState& state_;
  const Graph& g_;
  std::vector<uint32_t> most_;    // by id: upper bound of its instructions
  std::vector<Id> base_;          // by id: the node from which its work was estimated
  std::vector<uint64_t> behind_;  // by id: work of all nodes up to it, with cheap sources
  uint64_t total_ = 0;
  std::vector<Id> needed_;  // by id: the last cut after which the node is needed
  std::vector<uint32_t> epoch_of_;
  uint32_t epoch_ = 0;
  std::vector<Id> region_;
  bool stored_any_ = false;
};

}  // namespace

uint32_t instructions_of(const Graph& g, const Node& n) {
  if (n.op == Op::Reduce)  // its list is the operation and the axes
    return kLoop * static_cast<uint32_t>(g.list(static_cast<ListId>(n.arg)).size() - 1);
  const CostFacts& cost = cost_facts(op_info(n.op).cost);
  return n.src_count == 2 && is_number(g, n.src[1]) ? cost.instructions_by_constant
                                                    : cost.instructions;
}

bool limit_work(SchedulerState& state) {
  return WorkLimiter(state).run();
}

}  // namespace plugrad::schedule
