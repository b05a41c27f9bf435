// The perf level: measured and reported without limits. A test fails only if a call fails.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "conformance/plugin/calls.h"
#include "conformance/report/perf_kernels.h"
#include "conformance/test.h"

namespace plugrad::conformance {
namespace {

constexpr double kShare = 0.08;  // maximum seconds per measurement
constexpr uint64_t kMostRepeats = 1000;
constexpr uint64_t kMostElements = 1 << 24;
constexpr uint64_t kMostCopyBytes = 64 << 20;

template <typename Work>
double seconds_of(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Times {
  double best = 0, median = 0;
  size_t count = 0;
};

// One warm-up, then at least three runs.
template <typename Work>
Times time_repeatedly(Work&& work) {
  std::vector<double> times;
  double left = kShare - seconds_of(work);
  while (times.size() < 3 || (left > 0 && times.size() < kMostRepeats)) {
    times.push_back(seconds_of(work));
    left -= times.back();
  }
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2], times.size()};
}

// A kernel with buffers of ones, ready for repeated launches.
class Prepared {
 public:
  Prepared(Device& device, const TimedKernel& timed) : device_(device) {
    device.require_claims(timed.block);
    kernel_ = device.compile(timed.block);
    for (uint64_t bytes : timed.buffer_bytes) {
      buffers_.push_back(device.allocate(bytes));
      const std::vector<float> ones(bytes / 4, 1.0f);
      buffers_.back().write(std::as_bytes(std::span(ones)));
      launch_.buffers.push_back(buffers_.back().handle());
    }
    launch_.group_count = {timed.groups[0], timed.groups[1], 1};
    launch_.local_size = {timed.items, 1, 1};
  }
  void operator()() { device_.launch(*kernel_, launch_); }

 private:
  Device& device_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Buffer> buffers_;
  KernelLaunch launch_;
};

// The largest size, in powers of two from `least`, with three launches within the time share.
template <typename Make>
uint64_t largest_size(Device& device, uint64_t least, uint64_t most, double growth, Make&& make) {
  uint64_t size = least;
  while (size < most) {
    Prepared probe(device, make(size));
    probe();
    double seconds = seconds_of(probe);
    const uint64_t before = size;
    while (size < most && seconds * growth < kShare / 3) {
      size *= 2;
      seconds *= growth;
    }
    if (size == before) break;
    if (size / before < 8) break;  // the measured size is close enough to the intended one
  }
  return size;
}

uint64_t most_elements(Device& device) {
  const uint64_t allowed = device.caps().max_buffer_bytes;
  return allowed ? std::min(kMostElements, allowed / 4) : kMostElements;
}

void measure_latency(Context& context) {
  Prepared launch(context.device(), make_nothing_kernel());
  const Times times = time_repeatedly(launch);
  context.measure("us", times.median * 1e6,
                  fmt::format("median of {} launches that are waited for; the fastest {:.2f} us",
                              times.count, times.best * 1e6));
}

double add_bandwidth(Device& device, uint64_t& count) {
  const Spread spread = spread_of(device);
  const auto make = [&](uint64_t size) { return make_add_kernel(spread, size); };
  count = largest_size(device, 1 << 12, most_elements(device), 2, make);
  const TimedKernel timed = make(count);
  return timed.bytes / time_repeatedly(Prepared(device, timed)).best * 1e-9;
}

void measure_elementwise(Context& context) {
  uint64_t count = 0;
  const double rate = add_bandwidth(context.device(), count);
  context.measure("GB/s", rate, fmt::format("a + b of {} f32 elements, best of all", count));
}

double chain_rate(Device& device) {
  const Spread spread = spread_of(device);
  const auto make = [&](uint64_t steps) { return make_chains_kernel(spread, steps); };
  const TimedKernel timed = make(largest_size(device, 16, 1 << 20, 2, make));
  return timed.operations / time_repeatedly(Prepared(device, timed)).best * 1e-9;
}

void measure_chains(Context& context) {
  const Spread spread = spread_of(context.device());
  context.measure("GFLOP/s", chain_rate(context.device()),
                  fmt::format("independent chains of {}, {} lanes, {} items a group",
                              spread.fma ? "FMA" : "MUL and ADD", spread.lanes, spread.items));
}

void measure_product(Context& context) {
  Device& device = context.device();
  const Spread spread = spread_of(device);
  const auto make = [&](uint64_t size) { return make_product_kernel(spread, size); };
  uint64_t most = 1024, count = 0;
  while (most * most > most_elements(device)) most /= 2;
  const uint64_t size = largest_size(device, 64, most, 8, make);
  const TimedKernel timed = make(size);
  const double rate = timed.operations / time_repeatedly(Prepared(device, timed)).best * 1e-9;
  const double compute = chain_rate(device), memory = add_bandwidth(device, count);
  const double roof = std::min(compute, memory * timed.operations / timed.bytes);
  context.measure("GFLOP/s", rate,
                  fmt::format("{0}x{0}x{0}; {1:.0f}% of the {2:.3g} GFLOP/s that chains ({3:.3g} "
                              "GFLOP/s) and memory ({4:.3g} GB/s) allow here",
                              size, rate / roof * 100, roof, compute, memory));
}

uint64_t copy_bytes(Device& device) {
  const uint64_t allowed = device.caps().max_buffer_bytes;
  return allowed ? std::min(kMostCopyBytes, allowed) : kMostCopyBytes;
}

// Bytes per copy: more if copies are fast.
template <typename Copy>
void measure_copy(Context& context, Copy&& copy) {
  const uint64_t most = copy_bytes(context.device());
  uint64_t bytes = std::min<uint64_t>(most, 1 << 16);
  double seconds = 0;
  for (;; bytes *= 4) {
    copy(bytes);  // first touch of memory is slow
    seconds = seconds_of([&] { copy(bytes); });
    if (bytes * 4 > most || seconds * 4 > kShare / 3) break;
  }
  const Times times = time_repeatedly([&] { copy(bytes); });
  context.measure("GB/s", static_cast<double>(bytes) / times.best * 1e-9,
                  fmt::format("{} KiB, best of {}", bytes >> 10, times.count));
}

void measure_copy_in(Context& context) {
  Device& device = context.device();
  Buffer buffer = device.allocate(copy_bytes(device));
  const std::vector<std::byte> host(buffer.size_bytes(), std::byte{1});
  measure_copy(context, [&](uint64_t bytes) {
    buffer.write(std::span(host).first(bytes));
    device.synchronize();
  });
}

void measure_copy_out(Context& context) {
  Device& device = context.device();
  Buffer buffer = device.allocate(copy_bytes(device));
  std::vector<std::byte> host(buffer.size_bytes(), std::byte{1});
  buffer.write(host);
  measure_copy(context, [&](uint64_t bytes) { buffer.read(std::span(host).first(bytes)); });
}

void measure_copy_device(Context& context) {
  Device& device = context.device();
  const pgr_allocator_api* api = device.plugin().allocator_api();
  Buffer from = device.allocate(copy_bytes(device)), to = device.allocate(copy_bytes(device));
  from.write(std::vector<std::byte>(from.size_bytes(), std::byte{1}));
  measure_copy(context, [&](uint64_t bytes) {
    expect_ok("copy", [&](pgr_error* error) {
      return api->copy(device.handle(), nullptr, to.handle(), 0, from.handle(), 0, bytes, error);
    });
    device.synchronize();
  });
}

}  // namespace

void add_perf_tests(Tests& tests) {
  const auto add = [&](const char* id, void (*run)(Context&)) {
    Test test;
    test.id = id;
    test.level = Level::Perf;
    test.limit_seconds = 60;
    test.run = run;
    tests.push_back(std::move(test));
  };
  add("perf.launch.latency", measure_latency);
  add("perf.copy.in", measure_copy_in);
  add("perf.copy.out", measure_copy_out);
  add("perf.copy.device", measure_copy_device);
  add("perf.elementwise.add", measure_elementwise);
  add("perf.compute.chains", measure_chains);
  add("perf.compute.matmul", measure_product);
}

}  // namespace plugrad::conformance
