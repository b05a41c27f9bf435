// Prepared constants: what a recording computes of captured tensors alone that it does not assign,
// such as packed or cast weights, is computed once and kept until one of them is assigned.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/recording/prepared_constants.h"
#include "jit/recording.h"

namespace plugrad::jit_detail {

/// Bytes that recordings keep already on a device.
using KeptOn = std::function<uint64_t(uint32_t device)>;

/// Runs a plan on inputs; gives its roots.
using RunPlan = std::function<std::vector<engine::ValuePtr>(engine::ReadyPlan&,
                                                            std::span<const engine::ValuePtr>)>;

/// One run of a recording, of which the constant part is kept. Values do not change once they are
/// computed: a tensor that is assigned, in whatever way, has another Value afterwards.
class JitConstants {
 public:
  JitConstants(const JitRun& run, const std::vector<bool>& is_constant_value, const KeptOn& kept);

  bool empty() const { return kept_->parts.empty(); }
  /// The run without its constant parts, whose results are inputs behind its own.
  const JitRun& rest() const { return rest_; }
  /// The values, for the session to count and to take back.
  const std::shared_ptr<engine::PreparedConstants>& kept() const { return kept_; }
  /// Memory lacked: the run is to be done as a whole.
  bool is_given_up() const { return kept_->is_given_up; }

  /// Computes what is missing or outdated, unless another recording has it, and adds the results to
  /// `inputs`, which are those of the run.
  void add_results(std::vector<engine::ValuePtr>& inputs,
                   const engine::PreparedConstantsList& others, const RunPlan& run);

 private:
  std::shared_ptr<engine::PreparedConstants> kept_ = std::make_shared<engine::PreparedConstants>();
  JitRun rest_;
};

/// Of each run of the recording; null where nothing of it is constant.
std::vector<std::shared_ptr<JitConstants>> constants_of(const JitRecording& recording,
                                                        const KeptOn& kept);

}  // namespace plugrad::jit_detail
