// Stores values so that every kernel keeps to the limit on its buffers.
#include <algorithm>

#include "schedule/fusion/cost.h"

namespace plugrad::schedule {
namespace {

class Limiter {
 public:
  explicit Limiter(SchedulerState& state) : state_(state), set_of_(state.graph.size(), 0) {}

  bool run() {
    for (Id id : state_.live) {
      const Op op = state_.graph[id].op;
      if (op == Op::Buffer || op == Op::UserKernel) continue;
      while (!fits(id)) store_widest_source(id);
    }
    return stored_any_;
  }

 private:
  void store(Id id) {
    state_.stored[id] = 1;
    stored_any_ = true;
  }

  /// Collects the stored values that `id` reads; false if there are too many. In most cases they
  /// are those of one source and a few more, so that nodes share sets.
  bool fits(Id id) {
    Id largest = kNoId;
    for (Id s : state_.graph.sources(id))
      if (state_.stored[s] == 0 && set_of_[s] != 0 &&
          (largest == kNoId || set(s).size() > set(largest).size()))
        largest = s;
    const std::vector<Id> more = read_beside(id, largest);
    const size_t count = more.size() + (largest == kNoId ? 0 : set(largest).size());
    if (count + 1 > state_.options.max_params) return false;
    if (largest == kNoId && more.empty()) return true;
    const bool is_last = largest != kNoId && state_.consumers.of(largest).size() == 1;
    if (largest == kNoId || (!more.empty() && (!is_last || is_shared_[set_of_[largest]] != 0)))
      set_of_[id] = add_copy(largest);
    else
      set_of_[id] = set_of_[largest];
    if (!is_last && largest != kNoId && more.empty()) is_shared_[set_of_[id]] = 1;
    std::vector<Id>& own = sets_[set_of_[id]];
    for (Id leaf : more) own.insert(std::ranges::lower_bound(own, leaf), leaf);
    return true;
  }

  const std::vector<Id>& set(Id id) const { return sets_[set_of_[id]]; }

  /// The stored values that sources other than `largest` read in addition.
  std::vector<Id> read_beside(Id id, Id largest) const {
    std::vector<Id> more;
    const auto add = [&](Id leaf) {
      ++state_.visits;
      if (largest != kNoId && std::ranges::binary_search(set(largest), leaf)) return;
      const auto at = std::ranges::lower_bound(more, leaf);
      if (at == more.end() || *at != leaf) more.insert(at, leaf);
    };
    for (Id s : state_.graph.sources(id)) {
      if (state_.stored[s] != 0)
        add(s);
      else if (s != largest)
        std::ranges::for_each(set(s), add);  // empty for constants
    }
    return more;
  }

  uint32_t add_copy(Id largest) {
    if (largest == kNoId)
      sets_.emplace_back();
    else
      sets_.push_back(std::vector<Id>(set(largest)));
    state_.visits += sets_.back().size();
    is_shared_.push_back(0);
    return static_cast<uint32_t>(sets_.size() - 1);
  }

  void store_widest_source(Id id) {
    Id widest = kNoId;
    size_t most = 0;
    for (Id s : state_.graph.sources(id)) {
      while (is_movement(state_.graph[s].op) && state_.stored[s] == 0) s = state_.graph[s].src[0];
      if (state_.stored[s] != 0 || set_of_[s] == 0 || sets_[set_of_[s]].size() <= most) continue;
      most = sets_[set_of_[s]].size();
      widest = s;
    }
    store(widest);
    refresh(id);
  }

  /// Updates the views between `id` and the value just stored.
  void refresh(Id id) {
    for (Id s : state_.graph.sources(id)) {
      std::vector<Id> views;
      while (is_movement(state_.graph[s].op) && state_.stored[s] == 0) {
        views.push_back(s);
        s = state_.graph[s].src[0];
      }
      while (!views.empty()) {
        fits(views.back());
        views.pop_back();
      }
    }
  }

  SchedulerState& state_;
  std::vector<uint32_t> set_of_;              // by id: index into sets_, 0 is empty
  std::vector<std::vector<Id>> sets_ = {{}};  // sorted
  std::vector<uint8_t> is_shared_ = {1};      // by set: whether several nodes may have it
  bool stored_any_ = false;
};

}  // namespace

bool limit_kernels(SchedulerState& state) {
  return Limiter(state).run();
}

}  // namespace plugrad::schedule
