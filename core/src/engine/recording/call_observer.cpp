#include "engine/recording/call_observer.h"

#include <utility>

#include "base/check.h"

namespace plugrad::engine {
namespace {

thread_local CallObserver* active_observer = nullptr;

}  // namespace

CallObserver* CallObserver::active() {
  return active_observer;
}

CallObserver* CallObserver::set_active(CallObserver* observer) {
  return std::exchange(active_observer, observer);
}

void CallObserver::require_none(std::string_view function) {
  require(!active_observer,
          "[{}] a value is read inside a jitted function: what the host does with it would not be "
          "done again by a replay; return the tensor and read it outside, or compute with it as a "
          "tensor (where() instead of if)",
          function);
}

}  // namespace plugrad::engine
