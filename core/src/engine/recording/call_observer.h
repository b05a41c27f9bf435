// Who is told what a thread computes while it records a call (jit/trace.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/value.h"

namespace plugrad::engine {

struct ReadyPlan;

/// The session tells the observer of the calling thread about every plan that it runs, in order.
class CallObserver {
 public:
  virtual ~CallObserver() = default;

  /// The observer of this thread; null outside a recorded call, or while values of before are
  /// computed.
  static CallObserver* active();
  /// Returns the one before. Null: this thread is not observed.
  static CallObserver* set_active(CallObserver* observer);
  /// Errors: User where this thread records a call: a replay would not read the value again.
  static void require_none(std::string_view function);

  /// The number of the call: tensors that are made in it carry it.
  virtual uint64_t call() const = 0;
  virtual void ran(const std::shared_ptr<ReadyPlan>& ready, std::span<const ValuePtr> inputs,
                   std::span<const ValuePtr> roots) = 0;
  virtual void brought_from_host(const ValuePtr& value) = 0;
  /// An optimiser's step is recorded and computed.
  virtual void step_done() = 0;
  /// Numbers of the inputs that are the same in every replay as long as no captured tensor is
  /// assigned, ascending.
  virtual std::vector<uint32_t> constant_inputs(std::span<const ValuePtr> inputs) const = 0;
};

}  // namespace plugrad::engine
