// Interface to a call of a jitted function that runs, and whose computations between the reads of the
// host are looked up among those of its earlier calls (jit/cuts.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/hash.h"
#include "engine/value.h"
#include "ir/graph.h"

namespace plugrad::engine {

struct ReadyPlan;

/// The session, whose mutex the caller holds, reports what the call's thread computes and reads.
class CutCall {
 public:
  virtual ~CutCall() = default;

  /// That of this thread; null outside one and while a call is recorded.
  static CutCall* active();
  /// Returns the previous one.
  static CutCall* set_active(CutCall* call);

  /// A plan for the graph of this key is looked up. Returns the numbers, ascending, of the inputs
  /// that were there in earlier calls, and probably are in later ones; none for a new graph of
  /// which `varies` a number or a length: a plan that serves several has no part that is constant.
  virtual std::vector<uint32_t> constant_inputs(const Hash128& graph,
                                                std::span<const ValuePtr> inputs,
                                                const std::function<bool()>& varies) = 0;
  /// Runs the plan that was found; may add to `inputs`.
  virtual std::vector<ValuePtr> run(const std::shared_ptr<ReadyPlan>& ready,
                                    std::vector<ValuePtr>& inputs) = 0;
  /// The host reads a value.
  virtual void read() = 0;
  /// The first node that was recorded in the call; kNoId if nodes were renumbered meanwhile.
  virtual Id first_node() const = 0;
};

}  // namespace plugrad::engine
