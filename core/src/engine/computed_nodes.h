// Records the nodes that were computed without being stored: which plan computed each, and whether
// a tensor denoted it then.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace plugrad::engine {

struct ReadyPlan;

/// Facts by node id of the session's graph.
class ComputedNodes {
 public:
  static constexpr uint32_t kGradients =
      UINT32_MAX;  // as Note::number: the gradients of marked leaves
  struct Note {
    uint32_t holders = 0;   // states that denote the node or a view of all its elements
    uint32_t plan = 0;      // first plan to compute it while held, else the latest; 0: none
    uint32_t number = 0;    // canonical number of the node in that plan
    bool was_held = false;  // a state held the node when `plan` computed it
  };

  /// Makes room for the node's note, so that hold() needs no memory.
  void reserve(Id id) {
    if (notes_.size() <= id) notes_.resize(id + 1 + id / 2);
  }
  void hold(Id id) {
    reserve(id);
    ++notes_[id].holders;
  }
  void release(Id id) { --notes_[id].holders; }
  bool is_held(Id id) const { return of(id).holders > 0; }
  Note of(Id id) const { return id < notes_.size() ? notes_[id] : Note{}; }

  void note(Id id, uint32_t plan, uint32_t number) {
    reserve(id);
    Note& known = notes_[id];
    if (known.plan == 0 || !known.was_held)
      known = {known.holders, plan, number, known.holders > 0};
  }
  uint32_t add_plan(const std::shared_ptr<ReadyPlan>& plan) {
    plans_.push_back(plan);
    return static_cast<uint32_t>(plans_.size());
  }
  std::shared_ptr<ReadyPlan> plan(uint32_t number) const { return plans_[number - 1].lock(); }

  /// The notes by the nodes' new ids, with no holders.
  ComputedNodes renumbered(std::span<const Id> new_id) const {
    ComputedNodes kept;
    kept.plans_ = plans_;
    for (Id id = 0; id < new_id.size() && id < notes_.size(); ++id) {
      if (new_id[id] == kNoId || notes_[id].plan == 0) continue;
      kept.reserve(new_id[id]);
      kept.notes_[new_id[id]] = notes_[id];
      kept.notes_[new_id[id]].holders = 0;
    }
    return kept;
  }

 private:
  std::vector<Note> notes_;
  std::vector<std::weak_ptr<ReadyPlan>> plans_;  // index: plan number - 1
};

}  // namespace plugrad::engine
