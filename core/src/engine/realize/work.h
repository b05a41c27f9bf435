// The nodes that one computation computes, and its plan.
#pragma once

#include <string>
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

}  // namespace plugrad::engine
