// The groups of L3 tests and their shared helpers.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "conformance/levels/kernels.h"

namespace plugrad::conformance {

// A device with its queues. Unsupported if the plugin or this device has none.
class Queues {
 public:
  explicit Queues(Device& device);
  explicit Queues(Context& context) : Queues(context.device()) {}

  const Tables tables;
  const pgr_queue_api& api;

  pgr_status try_create(pgr_queue** out, pgr_error* error) const;
  void finish(pgr_queue* queue) const;
};

class Queue {
 public:
  explicit Queue(const Queues& queues);
  ~Queue() { queues_.api.destroy(queues_.tables.handle, handle_); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  pgr_queue* handle() const { return handle_; }
  void finish() const { queues_.finish(handle_); }

  void launch(const Kernel& kernel, std::vector<pgr_buffer*> buffers, std::vector<uint64_t> scalars,
              std::array<uint64_t, 3> groups = {1, 1, 1}) const;
  void copy(const Buffer& dst, const Buffer& src, uint64_t size) const;
  void write(const Buffer& dst, std::span<const std::byte> bytes) const;
  std::vector<int32_t> read(const Buffer& src) const;  // waits

 private:
  const Queues& queues_;
  pgr_queue* handle_ = nullptr;
};

class Event {
 public:
  // Records the queue's work so far.
  Event(const Queues& queues, const Queue& queue);
  ~Event() { queues_.api.event_destroy(queues_.tables.handle, handle_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  pgr_event* handle() const { return handle_; }

  pgr_status wait(uint64_t timeout_ns) const;
  void wait_for_ever() const;
  void order(const Queue& later) const;  // its later work starts after this event
  uint64_t time_ns() const;              // Unsupported without timing

 private:
  const Queues& queues_;
  pgr_event* handle_ = nullptr;
};

// Buffers of i32, visible to all queues: filled by the device's default queue, for which other
// queues do not wait.
Buffer settled_ints(Device& device, std::span<const int32_t> values);

void add_queue_tests(Tests& tests);
void add_graph_tests(Tests& tests);
void add_time_tests(Tests& tests);

}  // namespace plugrad::conformance
