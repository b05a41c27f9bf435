// Prepared constants: values that a recording computes only from captured tensors that it does not
// assign, such as packed or cast weights. They are computed once and kept until such a tensor is
// assigned.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/recording/prepared_constants.h"
#include "jit/recording.h"

namespace plugrad::jit_detail {

/// Bytes that recordings already keep on a device.
using KeptOn = std::function<uint64_t(uint32_t device)>;

/// Runs a plan on inputs and returns its roots.
using RunPlan = std::function<std::vector<engine::ValuePtr>(engine::ReadyPlan&,
                                                            std::span<const engine::ValuePtr>)>;

/// One run of a recording whose constant part is kept. Values are immutable: a tensor that is
/// assigned has another Value afterwards.
class JitConstants {
 public:
  JitConstants(const JitRun& run, const std::vector<bool>& is_constant_value, const KeptOn& kept);

  bool empty() const { return kept_->parts.empty(); }
  /// The run without its constant parts; their results are inputs after its own.
  const JitRun& rest() const { return rest_; }
  /// The kept values, which the session counts and may reclaim.
  const std::shared_ptr<engine::PreparedConstants>& kept() const { return kept_; }
  /// The values were reclaimed: execute the run as a whole.
  bool is_dropped() const { return kept_->is_dropped; }

  /// Computes missing or outdated results, unless another recording has them, and appends the
  /// results to `inputs`, the run's own inputs.
  void add_results(std::vector<engine::ValuePtr>& inputs,
                   const engine::PreparedConstantsList& others, const RunPlan& run);

 private:
  std::shared_ptr<engine::PreparedConstants> kept_ = std::make_shared<engine::PreparedConstants>();
  JitRun rest_;
};

/// By run of the recording; null for a run without a constant part.
std::vector<std::shared_ptr<JitConstants>> constants_of(const JitRecording& recording,
                                                        const KeptOn& kept);

}  // namespace plugrad::jit_detail
