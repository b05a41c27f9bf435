// L3: the device's clock, the times of events, and counters.
#include <time.h>

#include <thread>

#include "conformance/levels/queues/async_families.h"

namespace plugrad::conformance {
namespace {

uint64_t host_now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

struct Moment {
  uint64_t device_ns = 0, host_ns = 0, error_ns = 0;
  int64_t offset() const { return static_cast<int64_t>(device_ns - host_ns); }
};

const pgr_profile_api& profile_of(Context& context) {
  const pgr_profile_api* api = context.plugin().profile_api();
  if (!api) throw Unsupported("the plugin does not offer pgr.profile");
  return *api;
}

Moment calibrate(Context& context) {
  Moment moment;
  const pgr_profile_api& profile = profile_of(context);
  expect_ok_or_unsupported("profile.calibrate", [&](pgr_error* error) {
    return profile.calibrate(context.device().handle(), &moment.device_ns, &moment.host_ns,
                             &moment.error_ns, error);
  });
  return moment;
}

void check_calibrate(Context& context) {
  for (int i = 0; i < 20; ++i) {
    const uint64_t before = host_now_ns();
    const Moment moment = calibrate(context);
    const uint64_t after = host_now_ns();
    expect(moment.host_ns + moment.error_ns >= before && moment.host_ns <= after + moment.error_ns,
           "calibrate's host time is not CLOCK_MONOTONIC of the call");
    expect(moment.error_ns < 1'000'000'000, "calibrate may be off by more than a second");
  }
}

void check_clock_runs(Context& context) {
  const Moment first = calibrate(context);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const Moment second = calibrate(context);
  const uint64_t device_ns = second.device_ns - first.device_ns;
  const uint64_t host_ns = second.host_ns - first.host_ns;
  const uint64_t error_ns = first.error_ns + second.error_ns + host_ns / 100;
  expect(device_ns + error_ns >= host_ns && device_ns <= host_ns + error_ns,
         "while the host's clock went on by " + std::to_string(host_ns) + " ns, the device's did " +
             std::to_string(device_ns) + " ns");
}

void check_event_time_order(Context& context) {
  Queues queues(context);
  Queue queue(queues);
  const SlowKernel slow(queues.tables.device);
  const uint64_t steps = slow.steps_for(10);
  Buffer value = settled_ints(queues.tables.device, std::vector<int32_t>{1});
  std::vector<std::unique_ptr<Event>> events;
  for (int i = 0; i < 4; ++i) {
    events.push_back(std::make_unique<Event>(queues, queue));
    queue.launch(slow.kernel(), {value.handle()}, {steps});
  }
  events.push_back(std::make_unique<Event>(queues, queue));
  queue.finish();
  for (size_t i = 1; i < events.size(); ++i) {
    const uint64_t before = events[i - 1]->time_ns(), after = events[i]->time_ns();
    expect(after >= before, "a later event has an earlier time");
    expect(after - before > 1'000'000,
           "10 ms of work took " + std::to_string(after - before) + " ns between two events");
  }
}

void check_event_time_not_ready(Context& context) {
  Queues queues(context);
  Queue queue(queues);
  const SlowKernel slow(queues.tables.device);
  Buffer value = settled_ints(queues.tables.device, std::vector<int32_t>{1});
  require_offered(queues.api.event_time, "pgr.queue event_time");
  queue.launch(slow.kernel(), {value.handle()}, {slow.steps_for(200)});
  Event event(queues, queue);
  uint64_t ns = 4711;
  expect_status("event_time behind 200 ms of work", PGR_STATUS_NOT_READY, [&](pgr_error* error) {
    return queues.api.event_time(queues.tables.handle, event.handle(), &ns, error);
  });
  expect(ns == 4711, "a failed event_time touched *out_ns");
  event.wait_for_ever();
  const uint64_t first = event.time_ns();
  expect(event.time_ns() == first, "the time of an event changes");
}

// Event times, converted to the host's clock, lie between the surrounding calls.
void check_event_time_on_host_clock(Context& context) {
  Queues queues(context);
  Queue queue(queues);
  const SlowKernel slow(queues.tables.device);
  Buffer value = settled_ints(queues.tables.device, std::vector<int32_t>{1});
  const Moment moment = calibrate(context);
  const uint64_t before = host_now_ns();
  queue.launch(slow.kernel(), {value.handle()}, {slow.steps_for(10)});
  Event event(queues, queue);
  event.wait_for_ever();
  const uint64_t after = host_now_ns();
  const uint64_t host_ns = event.time_ns() - static_cast<uint64_t>(moment.offset());
  const uint64_t slack = moment.error_ns + 200'000;
  expect(host_ns + slack >= before && host_ns <= after + slack,
         "an event's time on the host's clock is " + std::to_string(host_ns) +
             ", outside of the calls round it: " + std::to_string(before) + " to " +
             std::to_string(after));
}

void check_launch_time(Context& context) {
  Queues queues(context);
  Queue queue(queues);
  const SlowKernel slow(queues.tables.device);
  Buffer value = settled_ints(queues.tables.device, std::vector<int32_t>{1});
  Event begin(queues, queue);
  Launch launch(slow.kernel(), {value.handle()}, {slow.steps_for(20)});
  launch.desc.timing = 1;
  uint64_t time_ns = 0;
  launch.start(queues.tables, queue.handle(), &time_ns);
  Event end(queues, queue);
  queue.finish();
  const uint64_t between_ns = end.time_ns() - begin.time_ns();
  expect(time_ns > 0 && time_ns <= between_ns + between_ns / 20 + 100'000,
         "a launch took " + std::to_string(time_ns) + " ns, the events round it are " +
             std::to_string(between_ns) + " ns apart");
}

struct Counted {
  std::string name, unit;
  uint64_t value;
};

std::vector<Counted> counters(Context& context, Device& device) {
  const pgr_profile_api& profile = profile_of(context);
  require_offered(profile.counter, "pgr.profile counter");
  std::vector<Counted> all;
  for (uint32_t i = 0; i < 1000; ++i) {
    pgr_counter counter;
    PGR_INIT(counter, COUNTER);
    CallError error;
    const pgr_status status = profile.counter(device.handle(), i, &counter, error.get());
    if (status == PGR_STATUS_NOT_FOUND) return all;
    if (status == PGR_STATUS_UNSUPPORTED) throw Unsupported("counter answered UNSUPPORTED");
    if (status != PGR_STATUS_OK) fail_call("profile.counter", status, error);
    all.push_back({std::string(sdk::to_view(counter.name)), std::string(sdk::to_view(counter.unit)),
                   counter.value});
  }
  throw Failed("counter number 1,000 is there: NOT_FOUND never comes");
}

void check_counters(Context& context) {
  const auto device = context.plugin().open_device();
  const auto before = counters(context, *device);
  for (size_t i = 0; i < before.size(); ++i) {
    expect(!before[i].name.empty(), "counter " + std::to_string(i) + " has no name");
    for (size_t k = 0; k < i; ++k)
      expect(before[k].name != before[i].name, "two counters are named " + before[i].name);
  }
  const auto kernel = device->compile(spread_kernel(10));
  Buffer in = settled_ints(*device, random_ints(10, 1)), out = device->allocate(40);
  device->launch(*kernel, {{out.handle(), in.handle()}, {1}, {10, 1, 1}, {1, 1, 1}});
  device->synchronize();
  const auto after = counters(context, *device);
  expect(after.size() == before.size(), "the number of counters changes");
  bool moved = before.empty();
  for (size_t i = 0; i < before.size(); ++i) {
    expect(after[i].name == before[i].name, "counters change their places");
    expect(after[i].value >= before[i].value, "counter " + after[i].name + " went back");
    moved = moved || after[i].value > before[i].value;
  }
  expect(moved, "a copy and a launch moved no counter");
}

}  // namespace

void add_time_tests(Tests& tests) {
  auto add = [&](const std::string& id, const char* claim, std::function<void(Context&)> run,
                 const char* unlocked_by = "") {
    Test& test = add_test(tests, Level::L3, "l3.time." + id, std::move(run));
    test.claim = claim;
    test.unlocked_by = unlocked_by;
  };
  constexpr const char *kQueue = "pgr.queue", *kProfile = "pgr.profile";
  constexpr const char* kEventTime = "pgr.queue event_time";
  add("calibrate", kProfile, check_calibrate);
  add("clock_runs", kProfile, check_clock_runs);
  add("event.order", kQueue, check_event_time_order, kEventTime);
  add("event.not_ready", kQueue, check_event_time_not_ready, kEventTime);
  add("event.host_clock", kProfile, check_event_time_on_host_clock, kEventTime);
  add("launch", kQueue, check_launch_time, kEventTime);
  add("counters", kProfile, check_counters, "pgr.profile counter");
}

}  // namespace plugrad::conformance
