// Calls into a plugin that may never return. Each runs on a thread that can be left behind: the
// thread of a call that hangs cannot be ended, so the call goes on there and its caller does not.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "plugrad/plugin_api/status.h"

namespace plugrad::runtime {

/// Owns all memory that the plugin reads or writes through it.
using DeviceCall = std::function<pgr_status(pgr_error*)>;

/// The status of `call`, with `error` filled; nothing where it has not returned within `limit`. The
/// call then goes on, and is destroyed if it ever returns. What it throws is thrown here. The
/// caller's scope of settings holds in it. Where the system has no more threads, the call runs on
/// the caller's, without limit.
std::optional<pgr_status> run_limited(DeviceCall call, std::chrono::nanoseconds limit,
                                      pgr_error* error);

}  // namespace plugrad::runtime
