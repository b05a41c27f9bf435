// L3: queues and events. Long kernels expose premature completion.
#include <algorithm>
#include <chrono>
#include <thread>

#include "conformance/levels/queues/async_families.h"

namespace plugrad::conformance {
namespace {

constexpr double kLongMs = 30;

std::vector<int32_t> one(int32_t value) {
  return {value};
}

void write_one(Device& device, Buffer& buffer, int32_t value) {
  buffer.write(std::as_bytes(std::span(&value, 1)));
  device.synchronize();
}

void check_order_in_queue(Context& context) {
  Queues queues(context);
  Queue queue(queues);
  const SlowKernel slow(queues.tables.device);
  const uint64_t steps = slow.steps_for(2);
  Buffer value = settled_ints(queues.tables.device, one(1));
  for (int i = 0; i < 12; ++i) queue.launch(slow.kernel(), {value.handle()}, {steps});
  expect_ints("12 launches on one queue", queue.read(value), one(slow_result(1, 12 * steps)));
}

void check_copies_in_queue(Context& context) {
  Queues queues(context);
  Queue queue(queues);
  Device& device = queues.tables.device;
  const SlowKernel slow(device);
  const uint64_t steps = slow.steps_for(4);
  Buffer a = settled_ints(device, one(0)), b = settled_ints(device, one(0));
  for (int32_t round = 1; round <= 4; ++round) {
    std::vector<int32_t> start = one(round);
    queue.write(a, std::as_bytes(std::span(start)));
    start[0] = -1;  // may be reused after the return
    queue.launch(slow.kernel(), {a.handle()}, {steps});
    queue.copy(b, a, 4);
    queue.launch(slow.kernel(), {b.handle()}, {steps});
    expect_ints("write, launch, copy, launch on one queue", queue.read(b),
                one(slow_result(round, 2 * steps)));
  }
}

void check_fill_in_queue(Context& context) {
  Queues queues(context);
  Queue queue(queues);
  const Tables& t = queues.tables;
  require_offered(t.memory.fill, "pgr.allocator fill");
  const SlowKernel slow(t.device);
  const uint64_t steps = slow.steps_for(10);
  Buffer value = settled_ints(t.device, one(1));
  queue.launch(slow.kernel(), {value.handle()}, {steps});
  const int32_t pattern = 77;
  expect_ok_or_unsupported("allocator.fill on a queue", [&](pgr_error* error) {
    return t.memory.fill(t.handle, queue.handle(), value.handle(), 0, 4, &pattern, 4, error);
  });
  queue.launch(slow.kernel(), {value.handle()}, {steps});
  expect_ints("launch, fill, launch on one queue", queue.read(value), one(slow_result(77, steps)));
}

// Read without a queue: the wait alone makes the bytes visible.
void check_finish(Context& context) {
  Queues queues(context);
  Queue queue(queues);
  const SlowKernel slow(queues.tables.device);
  const uint64_t steps = slow.steps_for(kLongMs);
  for (int32_t round = 0; round < 3; ++round) {
    Buffer value = settled_ints(queues.tables.device, one(round));
    queue.launch(slow.kernel(), {value.handle()}, {steps});
    queue.finish();
    expect_ints("a value behind finish", read_ints(value), one(slow_result(round, steps)));
  }
}

void check_event_wait(Context& context) {
  Queues queues(context);
  Queue queue(queues);
  const SlowKernel slow(queues.tables.device);
  const uint64_t steps = slow.steps_for(kLongMs);
  for (int32_t round = 0; round < 3; ++round) {
    Buffer value = settled_ints(queues.tables.device, one(round));
    queue.launch(slow.kernel(), {value.handle()}, {steps});
    Event event(queues, queue);
    event.wait_for_ever();
    expect_ints("a value behind event_wait", read_ints(value), one(slow_result(round, steps)));
  }
}

void check_synchronize_queues(Context& context) {
  Queues queues(context);
  Queue first(queues), second(queues);
  Device& device = queues.tables.device;
  const SlowKernel slow(device);
  const uint64_t steps = slow.steps_for(kLongMs);
  Buffer a = settled_ints(device, one(1)), b = settled_ints(device, one(2));
  // Each queue is the slower one once.
  for (int32_t round = 0; round < 2; ++round) {
    const uint64_t of_a = round ? steps : steps / 4, of_b = round ? steps / 4 : steps;
    write_one(device, a, 1);
    write_one(device, b, 2);
    first.launch(slow.kernel(), {a.handle()}, {of_a});
    second.launch(slow.kernel(), {b.handle()}, {of_b});
    device.synchronize();
    expect_ints("the first queue's value behind synchronize", read_ints(a),
                one(slow_result(1, of_a)));
    expect_ints("the second queue's value behind synchronize", read_ints(b),
                one(slow_result(2, of_b)));
  }
}

void check_events_order_queues(Context& context) {
  Queues queues(context);
  Queue first(queues), second(queues);
  Device& device = queues.tables.device;
  const SlowKernel slow(device);
  const uint64_t steps = slow.steps_for(15);
  Buffer value = settled_ints(device, one(3)), copy = settled_ints(device, one(0));
  for (int32_t round = 0; round < 3; ++round) {
    const std::vector<int32_t> start = one(round + 10);
    first.write(value, std::as_bytes(std::span(start)));
    first.launch(slow.kernel(), {value.handle()}, {steps});
    Event made(queues, first);
    made.order(second);
    second.launch(slow.kernel(), {value.handle()}, {10});
    second.copy(copy, value, 4);
    Event used(queues, second);
    used.order(first);  // ordered before the next round's write
    expect_ints("a value that went from queue to queue", second.read(copy),
                one(slow_result(round + 10, steps + 10)));
  }
  first.finish();
}

// One value passes through many queues, each ordered after the previous one.
void check_ring(Context& context) {
  Queues queues(context);
  Device& device = queues.tables.device;
  const SlowKernel slow(device);
  const uint64_t steps = slow.steps_for(1.5);
  Buffer value = settled_ints(device, one(9));
  std::vector<std::unique_ptr<Queue>> ring;
  std::vector<std::unique_ptr<Event>> events;
  for (int i = 0; i < 4; ++i) ring.push_back(std::make_unique<Queue>(queues));
  for (size_t i = 0; i < 16; ++i) {
    Queue& queue = *ring[i % 4];
    if (i > 0) events.back()->order(queue);
    queue.launch(slow.kernel(), {value.handle()}, {steps});
    events.push_back(std::make_unique<Event>(queues, queue));
  }
  events.back()->wait_for_ever();
  expect_ints("16 launches on 4 queues", read_ints(value), one(slow_result(9, 16 * steps)));
}

void check_timeout(Context& context) {
  Queues queues(context);
  Queue queue(queues);
  const SlowKernel slow(queues.tables.device);
  const uint64_t steps = slow.steps_for(200);
  Buffer value = settled_ints(queues.tables.device, one(1));
  queue.launch(slow.kernel(), {value.handle()}, {steps});
  Event event(queues, queue);
  for (uint64_t timeout_ns : {uint64_t{0}, uint64_t{1'000'000}}) {
    const pgr_status status = event.wait(timeout_ns);
    expect(status == PGR_STATUS_TIMED_OUT,
           "event_wait of " + std::to_string(timeout_ns) + " ns behind 200 ms of work answered " +
               status_name(status) +
               (status == PGR_STATUS_OK ? ": the event is reached too early, or launches on a "
                                          "queue are not asynchronous"
                                        : ""));
  }
  event.wait_for_ever();
  expect(event.wait(0) == PGR_STATUS_OK, "event_wait of a reached event does not answer OK");
  expect_ints("the value", read_ints(value), one(slow_result(1, steps)));
}

void check_destroy_waits(Context& context) {
  Queues queues(context);
  const SlowKernel slow(queues.tables.device);
  const uint64_t steps = slow.steps_for(kLongMs);
  Buffer value = settled_ints(queues.tables.device, one(4));
  {
    Queue queue(queues);
    queue.launch(slow.kernel(), {value.handle()}, {steps});
  }
  expect_ints("the value of a queue that was destroyed", read_ints(value),
              one(slow_result(4, steps)));
}

void check_free_while_queued(Context& context) {
  Queues queues(context);
  Queue queue(queues);
  Device& device = queues.tables.device;
  const SlowKernel slow(device);
  const uint64_t steps = slow.steps_for(kLongMs);
  Buffer result = settled_ints(device, one(0));
  {
    Buffer value = settled_ints(device, one(5));
    queue.launch(slow.kernel(), {value.handle()}, {steps});
    queue.copy(result, value, 4);
  }
  std::vector<Buffer> others;  // would reuse memory that was freed too early
  for (int i = 0; i < 64; ++i) others.push_back(settled_ints(device, one(-1)));
  expect_ints("a value whose buffer was freed while work on it was queued", queue.read(result),
              one(slow_result(5, steps)));
}

void check_unload_while_queued(Context& context) {
  Queues queues(context);
  Queue queue(queues);
  Device& device = queues.tables.device;
  Buffer value = settled_ints(device, one(6));
  uint64_t steps = 0;
  {
    const SlowKernel slow(device);
    steps = slow.steps_for(kLongMs);
    queue.launch(slow.kernel(), {value.handle()}, {steps});
  }
  expect_ints("a value whose kernel was unloaded behind the launch", queue.read(value),
              one(slow_result(6, steps)));
}

void check_map_waits_for_queue(Context& context) {
  Queues queues(context);
  Queue queue(queues);
  const Tables& t = queues.tables;
  require_offered(t.memory.map, "pgr.allocator map");
  const SlowKernel slow(t.device);
  const uint64_t steps = slow.steps_for(kLongMs);
  Buffer value = settled_ints(t.device, one(7));
  queue.launch(slow.kernel(), {value.handle()}, {steps});
  void* at = nullptr;
  expect_ok_or_unsupported("allocator.map", [&](pgr_error* error) {
    return t.memory.map(t.handle, value.handle(), &at, error);
  });
  int32_t seen = 0;
  std::memcpy(&seen, at, 4);
  t.memory.unmap(t.handle, value.handle(), nullptr);
  expect(seen == slow_result(7, steps), "map did not wait for queued work on the buffer");
}

void check_event_outlives_queue(Context& context) {
  Queues queues(context);
  std::unique_ptr<Event> event;
  {
    Queue queue(queues);
    event = std::make_unique<Event>(queues, queue);
  }
  expect(event->wait(1'000'000'000) == PGR_STATUS_OK,
         "an event whose queue was destroyed is not reached");
}

void check_event_destroyed_early(Context& context) {
  Queues queues(context);
  Queue first(queues), second(queues);
  const SlowKernel slow(queues.tables.device);
  const uint64_t steps = slow.steps_for(10);
  Buffer value = settled_ints(queues.tables.device, one(8));
  first.launch(slow.kernel(), {value.handle()}, {steps});
  {
    Event event(queues, first);
    event.order(second);
  }
  second.launch(slow.kernel(), {value.handle()}, {steps});
  expect_ints("work behind an event that was destroyed early", second.read(value),
              one(slow_result(8, 2 * steps)));
}

// One device; each thread has its own queue and buffer.
void check_queues_on_threads(Context& context) {
  Queues queues(context);
  Device& device = queues.tables.device;
  const SlowKernel slow(device);
  constexpr int kThreads = 6;
  std::vector<std::string> failures(kThreads);
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number)
    threads.emplace_back([&, number] {
      try {
        Queue queue(queues);
        for (int round = 0; round < 15; ++round) {
          const uint64_t steps = 100 + static_cast<uint64_t>(number * 31 + round * 7);
          Buffer value = device.allocate(4);  // the default queue belongs to another thread
          const std::vector<int32_t> start = one(number);
          queue.write(value, std::as_bytes(std::span(start)));
          queue.launch(slow.kernel(), {value.handle()}, {steps});
          queue.launch(slow.kernel(), {value.handle()}, {steps});
          Event event(queues, queue);
          event.wait_for_ever();
          expect_ints("a value of one of 6 threads", queue.read(value),
                      one(slow_result(number, 2 * steps)));
        }
      } catch (const std::exception& error) {
        failures[static_cast<size_t>(number)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) expect(failure.empty(), failure);
}

void check_null_queue(Context& context) {
  Queues queues(context);
  const Tables& t = queues.tables;
  const SlowKernel slow(t.device);
  const uint64_t steps = slow.steps_for(10);
  Buffer value = settled_ints(t.device, one(9)), copy = settled_ints(t.device, one(0));
  Launch(slow.kernel(), {value.handle()}, {steps}).start(t);
  expect_ok("allocator.copy", [&](pgr_error* error) {
    return t.memory.copy(t.handle, nullptr, copy.handle(), 0, value.handle(), 0, 4, error);
  });
  queues.finish(nullptr);
  expect_ints("launch and copy on the NULL queue", read_ints(copy), one(slow_result(9, steps)));
}

void check_queue_refusals(Context& context) {
  Queues queues(context);
  Queue queue(queues);
  pgr_device* device = queues.tables.handle;
  auto refused = [](const char* name, auto call) {
    expect_status(name, PGR_STATUS_INVALID_ARGUMENT, call);
  };
  refused("create without an out-pointer",
          [&](pgr_error* error) { return queues.api.create(device, nullptr, error); });
  refused("record without an out-pointer", [&](pgr_error* error) {
    return queues.api.record(device, queue.handle(), nullptr, error);
  });
  refused("wait for a NULL event", [&](pgr_error* error) {
    return queues.api.wait(device, queue.handle(), nullptr, error);
  });
  refused("event_wait of NULL",
          [&](pgr_error* error) { return queues.api.event_wait(device, nullptr, 0, error); });
  // Arguments are checked at the call.
  Buffer value = settled_ints(queues.tables.device, one(1));
  std::byte byte{};
  refused("copy_in on a queue behind the buffer's end", [&](pgr_error* error) {
    return queues.tables.memory.copy_in(device, queue.handle(), value.handle(), 4, &byte, 1, error);
  });
}

void check_many_queues(Context& context) {
  Queues queues(context);
  std::vector<std::unique_ptr<Queue>> all;
  for (int i = 0; i < 32; ++i) all.push_back(std::make_unique<Queue>(queues));
  Device& device = queues.tables.device;
  const auto kernel = device.compile(slow_kernel());
  std::vector<Buffer> values;
  for (int32_t i = 0; i < 32; ++i) {
    values.push_back(settled_ints(device, one(i)));
    all[static_cast<size_t>(i)]->launch(*kernel, {values.back().handle()}, {50});
  }
  for (int32_t i = 0; i < 32; ++i)
    expect_ints("a value of one of 32 queues",
                all[static_cast<size_t>(i)]->read(values[static_cast<size_t>(i)]),
                one(slow_result(i, 50)));
}

}  // namespace

void add_queue_tests(Tests& tests) {
  auto add = [&](const std::string& id, std::function<void(Context&)> run) {
    add_test(tests, Level::L3, "l3.queue." + id, std::move(run)).claim = "pgr.queue";
  };
  add("order", check_order_in_queue);
  add("order.copies", check_copies_in_queue);
  add("order.fill", check_fill_in_queue);
  add("order.events", check_events_order_queues);
  add("order.ring", check_ring);
  add("finish", check_finish);
  add("event_wait", check_event_wait);
  add("synchronize", check_synchronize_queues);
  add("timeout", check_timeout);
  add("destroy_waits", check_destroy_waits);
  add("free_while_queued", check_free_while_queued);
  add("unload_while_queued", check_unload_while_queued);
  add("map_waits", check_map_waits_for_queue);
  add("event.outlives_queue", check_event_outlives_queue);
  add("event.destroyed_early", check_event_destroyed_early);
  add("threads", check_queues_on_threads);
  add("null_queue", check_null_queue);
  add("refusals", check_queue_refusals);
  add("many", check_many_queues);
}

void add_async_tests(Tests& tests) {
  add_queue_tests(tests);
  add_graph_tests(tests);
  add_time_tests(tests);
}

}  // namespace plugrad::conformance
