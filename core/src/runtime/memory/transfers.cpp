#include "runtime/memory/transfers.h"

#include <algorithm>

#include "runtime/device/device_state.h"

namespace plugrad::runtime {

bool Transfers::can() {
  std::call_once(made_, [&] {
    if (!device_.timeline.is_kept() || !offered(device_.queue.create)) return;
    CallError error;
    std::string escaped;
    pgr_queue* made = nullptr;
    const WatchedCall watched(device_.calls, "queue_create");
    const pgr_status status = guarded(error, escaped, [&](pgr_error* e) {
      return device_.queue.create(device_.handle, &made, e);
    });
    if (status == PGR_STATUS_OK) queue_ = made;
  });
  return queue_ != nullptr;
}

std::uint64_t Transfers::copy_in(pgr_buffer* dst, std::uint64_t dst_offset_bytes, const void* src,
                                 std::uint64_t size_bytes, QueuePlace* after) {
  const std::lock_guard lock(mutex_);
  if (after) device_.timeline.let_wait(queue_, *after);
  const std::uint64_t submit_ns = tracing() ? monotonic_ns() : 0;
  device_.calls.check("copy_in", [&](pgr_error* e) {
    return device_.allocator_api.copy_in(device_.handle, queue_, dst, dst_offset_bytes, src,
                                         size_bytes, e);
  });
  if (submit_ns != 0)
    device_.trace.copied(DeviceTrace::kTransfers, queue_, trace::Direction::In, size_bytes,
                         submit_ns);
  return ++copied_;
}

void Transfers::join(std::uint64_t copied) {
  if (copied <= joined_) return;
  const std::lock_guard lock(mutex_);
  if (copied <= joined_) return;
  pgr_event* event = nullptr;
  device_.calls.check("record", [&](pgr_error* e) {
    return device_.queue.record(device_.handle, queue_, &event, e);
  });
  struct Owner {
    DeviceState& device;
    pgr_event* event;
    ~Owner() {
      device.calls.quietly("event_destroy",
                           [&] { device.queue.event_destroy(device.handle, event); });
    }
  } const owner{device_, event};
  device_.on_queue(
      "wait", [&](pgr_error* e) { return device_.queue.wait(device_.handle, nullptr, event, e); });
  joined_ = copied_;
}

void Transfers::copy_out(void* dst, pgr_buffer* src, std::uint64_t src_offset_bytes,
                         std::uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t submit_ns = tracing() ? monotonic_ns() : 0;
  device_.calls.check("copy_out", [&](pgr_error* e) {
    return device_.allocator_api.copy_out(device_.handle, queue_, dst, src, src_offset_bytes,
                                          size_bytes, e);
  });
  if (submit_ns != 0)
    device_.trace.copied(DeviceTrace::kTransfers, queue_, trace::Direction::Out, size_bytes,
                         submit_ns);
}

void Transfers::wait_quietly(std::uint64_t timeout_ns) noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || !queue_) return;
  device_.calls.quietly("exit", [&] {
    pgr_event* event = nullptr;
    if (device_.queue.record(device_.handle, queue_, &event, nullptr) != PGR_STATUS_OK) return;
    device_.queue.event_wait(device_.handle, event, timeout_ns, nullptr);
    device_.queue.event_destroy(device_.handle, event);
  });
}

void Transfers::shut_down() noexcept {
  if (!queue_) return;
  device_.calls.quietly("queue_destroy", [&] { device_.queue.destroy(device_.handle, queue_); });
  queue_ = nullptr;
}

}  // namespace plugrad::runtime
