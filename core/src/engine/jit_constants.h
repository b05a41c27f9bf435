// Prepared constants: what a recording computes of captured tensors alone that it does not assign,
// such as packed or cast weights, is computed once and kept until one of them is assigned.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/jit_recording.h"

namespace plugrad::engine {

/// Bytes that recordings keep already on a device.
using KeptOn = std::function<uint64_t(uint32_t device)>;

/// Runs a plan on inputs; gives its roots.
using RunPlan = std::function<std::vector<ValuePtr>(ReadyPlan&, std::span<const ValuePtr>)>;

class JitConstants;
using AllConstants = std::span<const std::weak_ptr<JitConstants>>;

/// One run of a recording, of which the constant part is kept. Values do not change once they are
/// computed: a tensor that is assigned, in whatever way, has another Value afterwards.
class JitConstants {
 public:
  JitConstants(const JitRun& run, const std::vector<bool>& is_constant_value, const KeptOn& kept);

  bool empty() const { return parts_.empty(); }
  /// The run without its constant parts, whose results are inputs behind its own.
  const JitRun& rest() const { return rest_; }

  /// Computes what is missing or outdated, unless another recording has it, and adds the results to
  /// `inputs`, which are those of the run.
  void add_results(std::vector<ValuePtr>& inputs, AllConstants others, const RunPlan& run);
  /// Memory lacks: lets the results go. From now on the run is to be done as a whole.
  void give_up();
  bool is_given_up() const { return is_given_up_; }
  /// All results that are kept.
  void add_values(std::vector<const Value*>& values) const;

 private:
  struct Part {
    std::shared_ptr<ReadyPlan> ready;
    std::vector<uint32_t> inputs;               // of the run, by number
    std::vector<std::weak_ptr<Value>> made_of;  // what those were: must not hold them
    std::vector<ValuePtr> results;
  };
  static bool is_up_to_date(const Part& part, std::span<const ValuePtr> inputs);
  static bool computes_the_same(const Part& a, const Part& b);
  static std::vector<ValuePtr> results_of_others(const Part& part, AllConstants others);

  std::vector<Part> parts_;
  JitRun rest_;
  bool is_given_up_ = false;
};

/// Of each run of the recording; null where nothing is constant.
std::vector<std::shared_ptr<JitConstants>> constants_of(const JitRecording& recording,
                                                        const KeptOn& kept);

}  // namespace plugrad::engine
