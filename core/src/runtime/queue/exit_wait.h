// Makes process exit wait for device work: a driver that works or compiles while its destructors
// run crashes. Drivers register destructors at any time, so an atexit function may run too late;
// the destructors of the main thread's thread-local objects run first. Limited to a few seconds a
// device.
#pragma once

#include "base/internal.h"

namespace plugrad::runtime {

struct DeviceState;

void wait_at_exit(DeviceState& device);
void forget_at_exit(DeviceState& device);
/// Prepares the calling thread; every thread that uses an asynchronous device calls it.
void prepare_thread_for_exit();

/// Registers `end`, which stops threads that use devices. Called before devices shut down and
/// before the exit wait; must allow a second call.
void before_devices_end(void (*end)());
void run_before_devices_end();
/// Ends the threads that use devices and waits for the devices, for programs without exit handlers.
PLUGRAD_INTERNAL void end_device_work();

/// Calls visit(device) for each open asynchronous device.
void each_waiting(void (*visit)(DeviceState&));

}  // namespace plugrad::runtime
