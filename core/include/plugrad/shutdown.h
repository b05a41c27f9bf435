/// Explicit shutdown, for programs that must release devices before they exit. Others do not need
/// it: plugrad closes nothing at exit.
#pragma once

#include "plugrad/export.h"

namespace plugrad {

/// Frees everything on every device in the order that plugins require (programs, memory, device,
/// plugin), and closes the devices permanently. Tensors may outlive it without their device data:
/// using such a tensor, or requesting a device, is an error. No other thread may use plugrad during
/// the call. A second call does nothing.
PLUGRAD_API void shutdown();

}  // namespace plugrad
