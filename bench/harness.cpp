#include "bench/harness.h"

#include <time.h>

#include <algorithm>

#include "base/clock.h"
#include "base/settings.h"
#include "engine/session.h"
#include "plugrad/jit.h"
#include "runtime/device/device.h"
#include "runtime/registry.h"

namespace plugrad::bench {
namespace {

Timing timing_of(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2]};
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void set_threads(int count) {
  change_settings([&](Settings& s) { s.threads = count; });
}

}  // namespace

std::vector<Timing> measure(const std::vector<Round>& contenders, const Rounds& rounds) {
  for (int i = 0; i < rounds.warm_up; ++i)
    for (const Round& round : contenders) round();
  std::vector<std::vector<double>> times(contenders.size());
  uint64_t start = monotonic_ns();
  auto enough = [&] {
    return times[0].size() >= static_cast<size_t>(rounds.least) &&
           static_cast<double>(monotonic_ns() - start) * 1e-9 > rounds.seconds;
  };
  while (!enough())
    for (size_t i = 0; i < contenders.size(); ++i) times[i].push_back(contenders[i]());
  std::vector<Timing> timings;
  for (auto& t : times) timings.push_back(timing_of(std::move(t)));
  return timings;
}

double time_of(const std::function<void()>& call) {
  uint64_t start = monotonic_ns();
  call();
  return static_cast<double>(monotonic_ns() - start) * 1e-9;
}

double processor_time_of(const std::function<void()>& call) {
  const double start = processor_seconds();
  call();
  return processor_seconds() - start;
}

Round realizing(std::function<std::vector<Tensor>()> make) {
  return [make = std::move(make), device = static_cast<runtime::Device*>(nullptr)]() mutable {
    if (!device) device = &runtime::Registry::instance().find_device(make()[0].device());
    double seconds = time_of([&] {
      const std::vector<Tensor> made = make();
      Tensor::realize(made);
      device->synchronize();  // realize returns after submission to the device
    });
    engine::Session::current().collect();
    return seconds;
  };
}

Round replaying(std::function<std::vector<Tensor>(const std::vector<Tensor>&)> make,
                std::vector<Tensor> arguments) {
  const auto replay = jit(std::move(make));
  runtime::Device& device = runtime::Registry::instance().find_device(arguments[0].device());
  for (int call = 0; call < 2; ++call) replay(arguments);
  return [=, &device, arguments = std::move(arguments)] {
    return time_of([&] {
      replay(arguments);
      device.synchronize();
    });
  };
}

ThreadScope::ThreadScope(int count) : outer_(settings().threads) {
  set_threads(count);
}
ThreadScope::~ThreadScope() {
  set_threads(outer_);
}

}  // namespace plugrad::bench
