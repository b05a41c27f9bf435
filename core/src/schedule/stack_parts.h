// Turns many values with the same expression into one value with an additional axis.
#pragma once

#include <map>

#include "schedule/scheduler_state.h"
#include "schedule/tensor_builder.h"

namespace plugrad::schedule {

class PartStacker {
 public:
  PartStacker(SchedulerState& state, TensorBuilder& build)
      : state_(state), g_(state.graph), build_(build) {}

  /// Equal for values with the same operations and shapes over the same stored values, whatever
  /// their offsets in these and their constants.
  uint64_t signature(Id node);

  /// The parts, which have one shape, along a new first axis; kNoId where they are not one
  /// computation.
  Id stack(const std::vector<Id>& parts);

 private:
  uint64_t own_signature(Id node);
  Id stack_different(const std::vector<Id>& parts);
  Id constants(const std::vector<Id>& parts);
  Id movement(const std::vector<Id>& parts);
  Id shrinks(const std::vector<Id>& parts);
  Id slices(Id source, const std::vector<Id>& parts);
  Id at_indices(Id source, const std::vector<Id>& parts);
  Id elementwise(const std::vector<Id>& parts);
  bool is_read_whole(Id node) const;
  Dims list(Id node) const {
    const auto values = g_.arg_list(node);
    return {values.begin(), values.end()};
  }

  SchedulerState& state_;
  Graph& g_;
  TensorBuilder& build_;
  std::vector<uint64_t> signatures_;
  std::map<std::vector<Id>, Id> known_;
  uint32_t depth_ = 0;
};

}  // namespace plugrad::schedule
