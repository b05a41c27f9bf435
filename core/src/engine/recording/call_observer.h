// Interface through which the session reports what a thread computes while it records a call
// (jit/trace.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/value.h"

namespace plugrad::engine {

struct ReadyPlan;

/// The session reports every plan that it runs to the calling thread's observer, in order.
class CallObserver {
 public:
  virtual ~CallObserver() = default;

  /// The observer of this thread; null outside a recorded call and while earlier values are
  /// computed.
  static CallObserver* active();
  /// Returns the previous observer. Null stops observation of this thread.
  static CallObserver* set_active(CallObserver* observer);
  /// The host reads a value. Errors: User if this thread records a call: a replay would not read it
  /// again.
  static void note_read();

  /// The number of the call; tensors made in it carry this number.
  virtual uint64_t call() const = 0;
  virtual void ran(const std::shared_ptr<ReadyPlan>& ready, std::span<const ValuePtr> inputs,
                   std::span<const ValuePtr> roots) = 0;
  /// The parts of a sharded value became one.
  virtual void joined(const ValuePtr& whole) = 0;
  virtual void brought_from_host(const ValuePtr& value) = 0;
  /// An optimiser's step was recorded and computed.
  virtual void step_done() = 0;
  /// Numbers, ascending, of the inputs that stay the same in every replay as long as no captured
  /// tensor is assigned.
  virtual std::vector<uint32_t> constant_inputs(std::span<const ValuePtr> inputs) const = 0;
};

}  // namespace plugrad::engine
