// Keeps kernels within the number of buffers that one may take.
#include <algorithm>
#include <iterator>

#include "schedule/cost.h"

namespace plugrad::schedule {
namespace {

class Limiter {
 public:
  explicit Limiter(Draft& draft) : draft_(draft), set_of_(draft.graph.size(), 0) {}

  bool run() {
    for (Id id : draft_.live) {
      const Op op = draft_.graph[id].op;
      if (op == Op::Buffer || op == Op::UserKernel) continue;
      while (!fits(id)) store_widest_source(id);
    }
    return stored_any_;
  }

 private:
  void store(Id id) {
    draft_.stored[id] = 1;
    stored_any_ = true;
  }

  /// Collects what the value of `id` reads; false when that is too much.
  bool fits(Id id) {
    std::vector<Id> leaves;
    uint32_t shared = 0;
    size_t parts = 0;
    for (Id s : draft_.graph.sources(id)) {
      const bool leaf = draft_.stored[s] != 0;
      if (!leaf && set_of_[s] == 0) continue;  // constants
      const std::vector<Id> own = leaf ? std::vector<Id>{s} : sets_[set_of_[s]];
      std::vector<Id> both;
      std::ranges::set_union(leaves, own, std::back_inserter(both));
      leaves = std::move(both);
      if (!leaf) shared = set_of_[s];
      ++parts;
    }
    if (leaves.size() + 1 > draft_.options.max_params) return false;
    if (leaves.empty()) return true;
    const bool same = shared != 0 && (parts == 1 || sets_[shared].size() == leaves.size());
    if (!same) sets_.push_back(std::move(leaves));
    set_of_[id] = same ? shared : static_cast<uint32_t>(sets_.size() - 1);
    return true;
  }

  void store_widest_source(Id id) {
    Id widest = kNoId;
    size_t most = 0;
    for (Id s : draft_.graph.sources(id)) {
      while (is_movement(draft_.graph[s].op) && draft_.stored[s] == 0) s = draft_.graph[s].src[0];
      if (draft_.stored[s] != 0 || set_of_[s] == 0 || sets_[set_of_[s]].size() <= most) continue;
      most = sets_[set_of_[s]].size();
      widest = s;
    }
    store(widest);
    refresh(id);
  }

  /// The views between `id` and what was just stored read only that now.
  void refresh(Id id) {
    for (Id s : draft_.graph.sources(id)) {
      std::vector<Id> views;
      while (is_movement(draft_.graph[s].op) && draft_.stored[s] == 0) {
        views.push_back(s);
        s = draft_.graph[s].src[0];
      }
      while (!views.empty()) {
        fits(views.back());
        views.pop_back();
      }
    }
  }

  Draft& draft_;
  std::vector<uint32_t> set_of_;              // by id: index into sets_, 0 is empty
  std::vector<std::vector<Id>> sets_ = {{}};  // sorted leaves
  bool stored_any_ = false;
};

}  // namespace

bool limit_kernels(Draft& draft) {
  return Limiter(draft).run();
}

}  // namespace plugrad::schedule
