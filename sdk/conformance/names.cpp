#include "plugrad/sdk/conformance.h"

namespace plugrad::conformance {

const char* to_string(Level level) {
  constexpr const char* kNames[] = {"L0", "L1", "L2", "L3", "perf"};
  return kNames[static_cast<size_t>(level)];
}

const char* to_string(Status status) {
  constexpr const char* kNames[] = {"pass", "fail", "unsupported", "waived", "crash", "timeout"};
  return kNames[static_cast<size_t>(status)];
}

}  // namespace plugrad::conformance
