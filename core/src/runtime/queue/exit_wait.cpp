#include "runtime/queue/exit_wait.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "runtime/device/device_state.h"

namespace plugrad::runtime {
namespace {

constexpr std::uint64_t kLongestNs = 10'000'000'000;

struct Waiting {
  std::mutex mutex;
  std::vector<DeviceState*> devices;
  std::vector<void (*)()> ends;
};
Waiting& waiting() {
  static auto* const all = new Waiting;  // never destroyed
  return *all;
}

// Ignores failures, which cannot be reported any more.
void wait_for_device(DeviceState& d) {
  const std::unique_lock lock(d.queue_mutex, std::try_to_lock);
  if (!lock || !d.calls.is_reachable() || d.calls.is_lost()) return;
  d.calls.quietly("exit", [&] {
    pgr_event* event = nullptr;
    if (d.queue.record(d.handle, nullptr, &event, nullptr) != PGR_STATUS_OK) return;
    d.queue.event_wait(d.handle, event, kLongestNs, nullptr);
    d.queue.event_destroy(d.handle, event);
  });
  d.transfers.wait_quietly(kLongestNs);
}

void wait_for_all() {
  const std::unique_lock lock(waiting().mutex, std::try_to_lock);
  if (!lock) return;
  for (DeviceState* device : waiting().devices) wait_for_device(*device);
}

struct ThreadEnd {
  bool is_used = false;
  ~ThreadEnd() {
    if (is_used && gettid() == getpid()) end_device_work();
  }
};
thread_local ThreadEnd thread_end;

}  // namespace

void end_device_work() {
  run_before_devices_end();
  wait_for_all();
}

void prepare_thread_for_exit() {
  thread_end.is_used = true;
}

void before_devices_end(void (*end)()) {
  prepare_thread_for_exit();
  const std::lock_guard lock(waiting().mutex);
  waiting().ends.push_back(end);
}

void run_before_devices_end() {
  std::vector<void (*)()> ends;
  {
    const std::lock_guard lock(waiting().mutex);
    ends = waiting().ends;
  }
  for (const auto end : ends) end();
}

void each_waiting(void (*visit)(DeviceState&)) {
  const std::lock_guard lock(waiting().mutex);
  for (DeviceState* device : waiting().devices) visit(*device);
}

void wait_at_exit(DeviceState& device) {
  prepare_thread_for_exit();
  const std::lock_guard lock(waiting().mutex);
  waiting().devices.push_back(&device);
}

void forget_at_exit(DeviceState& device) {
  const std::lock_guard lock(waiting().mutex);
  std::erase(waiting().devices, &device);
}

}  // namespace plugrad::runtime
