// The nodes that one computation computes, and its plan.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "engine/lengths/length_call.h"
#include "engine/plan/options.h"
#include "engine/session_state.h"

namespace plugrad::engine {

struct Session::Work {
  std::vector<Id> roots;                      // the requested ones, then those stored along
  std::vector<ComputedNodes::Note> repeated;  // computed before but not stored
  PlanRequest request{};
  std::shared_ptr<ReadyPlan> ready{};
  bool is_new = false;              // the plan was made for it
  std::vector<uint64_t> numbers{};  // that the plan takes at launch
  std::string remark{};             // why none serves several lengths
  LengthCall length{};              // if the plan serves several lengths
};

/// While one lives, a plan may write a tensor's new value to the memory of the one that it replaces,
/// if nothing else can reach that (donor.cpp).
class Session::DonorScope {
 public:
  /// `work`: null if it may not. `inputs`: the only other holders of the values.
  DonorScope(Session& session, const Work* work, const std::vector<ValuePtr>& inputs);
  ~DonorScope() { session_.state_->may_donate = nullptr; }
  DonorScope(const DonorScope&) = delete;
  DonorScope& operator=(const DonorScope&) = delete;

 private:
  bool allows(const schedule::Donation& pair);
  void find_holders();
  std::vector<TensorState*> replacing() const;

  Session& session_;
  const Work* const work_;
  const std::vector<ValuePtr>& inputs_;
  bool is_known_ = false;
  std::unordered_map<const Value*, std::vector<Id>> nodes_;  // of the values that may be replaced
};

}  // namespace plugrad::engine
