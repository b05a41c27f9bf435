#include "engine/recording/call_observer.h"

#include <utility>

#include "base/check.h"
#include "engine/recording/cut_call.h"

namespace plugrad::engine {
namespace {

thread_local CallObserver* active_observer = nullptr;
thread_local CutCall* active_cut_call = nullptr;

}  // namespace

CallObserver* CallObserver::active() {
  return active_observer;
}

CallObserver* CallObserver::set_active(CallObserver* observer) {
  return std::exchange(active_observer, observer);
}

void CallObserver::note_read() {
  require(
      !active_observer,
      "[read] a value is read inside a jitted function: what the host does with it would not be "
      "done again by a replay; return the tensor and read it outside, compute with it as a "
      "tensor (where() instead of if), or give jit() the option cuts=True (C++: {{.cuts = "
      "true}}): then the function runs in every call");
  if (active_cut_call) active_cut_call->read();
}

CutCall* CutCall::active() {
  return active_observer ? nullptr : active_cut_call;
}

CutCall* CutCall::set_active(CutCall* call) {
  return std::exchange(active_cut_call, call);
}

}  // namespace plugrad::engine
