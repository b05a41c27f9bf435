#include "conformance/levels/queues/async_families.h"

namespace plugrad::conformance {
namespace {

const pgr_queue_api& queue_api_of(Device& device) {
  const pgr_queue_api* api = device.plugin().queue_api();
  if (!api) throw Unsupported("the plugin does not offer pgr.queue");
  return *api;
}

}  // namespace

Buffer settled_ints(Device& device, std::span<const int32_t> values) {
  Buffer buffer = make_ints(device, values);
  device.synchronize();
  return buffer;
}

// A device of a plugin with queues may have been opened without queues.
Queues::Queues(Device& device) : tables(device), api(queue_api_of(device)) {
  const Queue exists(*this);
}

pgr_status Queues::try_create(pgr_queue** out, pgr_error* error) const {
  return api.create(tables.handle, out, error);
}

void Queues::finish(pgr_queue* queue) const {
  expect_ok("queue.finish",
            [&](pgr_error* error) { return api.finish(tables.handle, queue, error); });
}

Queue::Queue(const Queues& queues) : queues_(queues) {
  expect_ok_or_unsupported("queue.create",
                           [&](pgr_error* error) { return queues_.try_create(&handle_, error); });
}

void Queue::launch(const Kernel& kernel, std::vector<pgr_buffer*> buffers,
                   std::vector<uint64_t> scalars, std::array<uint64_t, 3> groups) const {
  Launch(kernel, std::move(buffers), std::move(scalars), groups).start(queues_.tables, handle_);
}

void Queue::copy(const Buffer& dst, const Buffer& src, uint64_t size) const {
  const Tables& t = queues_.tables;
  expect_ok("allocator.copy on a queue", [&](pgr_error* error) {
    return t.memory.copy(t.handle, handle_, dst.handle(), 0, src.handle(), 0, size, error);
  });
}

void Queue::write(const Buffer& dst, std::span<const std::byte> bytes) const {
  const Tables& t = queues_.tables;
  expect_ok("allocator.copy_in on a queue", [&](pgr_error* error) {
    return t.memory.copy_in(t.handle, handle_, dst.handle(), 0, bytes.data(), bytes.size(), error);
  });
}

std::vector<int32_t> Queue::read(const Buffer& src) const {
  const Tables& t = queues_.tables;
  std::vector<int32_t> values(src.size_bytes() / 4);
  expect_ok("allocator.copy_out on a queue", [&](pgr_error* error) {
    return t.memory.copy_out(t.handle, handle_, values.data(), src.handle(), 0, src.size_bytes(),
                             error);
  });
  return values;
}

Event::Event(const Queues& queues, const Queue& queue) : queues_(queues) {
  expect_ok("queue.record", [&](pgr_error* error) {
    return queues_.api.record(queues_.tables.handle, queue.handle(), &handle_, error);
  });
}

pgr_status Event::wait(uint64_t timeout_ns) const {
  return queues_.api.event_wait(queues_.tables.handle, handle_, timeout_ns, nullptr);
}

void Event::wait_for_ever() const {
  expect_ok("queue.event_wait", [&](pgr_error* error) {
    return queues_.api.event_wait(queues_.tables.handle, handle_, UINT64_MAX, error);
  });
}

void Event::order(const Queue& later) const {
  expect_ok("queue.wait", [&](pgr_error* error) {
    return queues_.api.wait(queues_.tables.handle, later.handle(), handle_, error);
  });
}

uint64_t Event::time_ns() const {
  require_offered(queues_.api.event_time, "pgr.queue event_time");
  uint64_t ns = 0;
  expect_ok_or_unsupported("queue.event_time", [&](pgr_error* error) {
    return queues_.api.event_time(queues_.tables.handle, handle_, &ns, error);
  });
  return ns;
}

}  // namespace plugrad::conformance
