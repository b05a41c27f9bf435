// Runs plugin calls that may never return on threads that can be abandoned: a hanging thread cannot
// be ended, so it stays and its caller goes on.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "plugrad/plugin_api/status.h"

namespace plugrad::runtime {

/// Owns all memory that the plugin accesses through it.
using DeviceCall = std::function<pgr_status(pgr_error*)>;

/// Returns the status of `call` and fills `error`; nothing if the call has not returned within
/// `limit`. It then continues, and is destroyed if it ever returns. Rethrows its exceptions. Uses
/// the caller's scope of settings. If no thread can be created, the call runs on the caller's
/// thread, without a limit.
std::optional<pgr_status> run_limited(DeviceCall call, std::chrono::nanoseconds limit,
                                      pgr_error* error);

}  // namespace plugrad::runtime
