// Holds the values that a recording computed from captured tensors alone (jit/constants.h). The
// session counts their memory and reclaims it when memory runs out.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/value.h"

namespace plugrad::engine {

struct ReadyPlan;

struct PreparedConstants {
  struct Part {
    std::shared_ptr<ReadyPlan> ready;
    std::vector<uint32_t> inputs;               // input numbers of the recorded plan
    std::vector<std::weak_ptr<Value>> made_of;  // those inputs at the time of computation
    std::vector<ValuePtr> results;
  };
  std::vector<Part> parts;
  bool is_dropped = false;  ///< from now on the recorded plan runs as a whole

  void drop() {
    is_dropped = true;
    for (Part& part : parts) part.results.clear();
  }
};

/// The prepared constants of all recordings.
class PreparedConstantsList {
 public:
  void add(const std::shared_ptr<PreparedConstants>& constants);
  /// Bytes on a device; 0: on all devices.
  uint64_t bytes_on(uint32_t device = 0) const;
  /// Drops all of them. Returns whether memory was freed.
  bool drop();

  template <class Visit>
  void each(Visit visit) const {
    for (const auto& weak : list_)
      if (const auto constants = weak.lock()) visit(*constants);
  }

 private:
  std::vector<std::weak_ptr<PreparedConstants>> list_;
};

}  // namespace plugrad::engine
