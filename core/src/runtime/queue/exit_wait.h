// The end of a process waits for the work of its devices: a driver that works, and maybe compiles,
// while its own destructors run crashes. Those are registered at any time, so that no function
// given to atexit is sure to come before them; what comes before all is the end of the main
// thread's thread-local objects. A device that does not finish is waited for some seconds only.
#pragma once

namespace plugrad::runtime {

struct DeviceState;

void wait_at_exit(DeviceState& device);
void forget_at_exit(DeviceState& device);
/// Called by each thread that uses an asynchronous device: the main one is then prepared.
void prepare_thread_for_exit();

/// `end` is called before devices shut down and before the process waits for them at its end: for
/// threads that use devices. Called once each time; it must bear a second call.
void before_devices_end(void (*end)());
void run_before_devices_end();

}  // namespace plugrad::runtime
