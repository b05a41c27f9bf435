#include "plan_scale/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "distributed/backend.h"
#include "engine/plan/options.h"
#include "engine/session_state.h"
#include "plugrad/distributed.h"
#include "plugrad/linalg.h"
#include "plugrad/tensor.h"
#include "runtime/runtime.h"
#include "scale/machine.h"
#include "tuning/calibration/machines.h"

namespace plugrad::tools {
namespace {

constexpr int kRounds = 9, kLinkRounds = 15;

struct Rates {
  double matrix = 0, vector = 0, memory = 0;  // operations, operations, bytes a second
};

template <class Run>
double median_seconds(int rounds, const Run& run) {
  std::vector<double> seconds;
  run();  // compiles
  for (int round = 0; round < rounds; ++round) {
    const uint64_t start_ns = monotonic_ns();
    run();
    seconds.push_back(static_cast<double>(monotonic_ns() - start_ns) * 1e-9);
  }
  std::ranges::nth_element(seconds, seconds.begin() + rounds / 2);
  return seconds[static_cast<size_t>(rounds) / 2];
}

/// Mean over a time that is long next to the slices in which processes share a core.
template <class Run>
double mean_seconds(const Run& run) {
  constexpr uint64_t kLeastNs = 1'500'000'000;
  const uint64_t start_ns = monotonic_ns();
  uint64_t rounds = 0, passed_ns = 0;
  for (; passed_ns < kLeastNs; passed_ns = monotonic_ns() - start_ns, ++rounds) run();
  return static_cast<double>(passed_ns) * 1e-9 / static_cast<double>(rounds);
}

/// Seconds of x = f(x): a new value each time, of one plan.
template <class F>
double measured_seconds(bool is_shared, Tensor x, const F& f) {
  runtime::Device& device = runtime::Registry::instance().default_device();
  x.realize();
  const auto run = [&] {
    x = f(x).realize();
    device.synchronize();
  };
  return is_shared ? mean_seconds(run) : median_seconds(kRounds, run);
}

/// `is_shared`: while all ranks do the same.
Rates measure_rates(bool is_shared) {
  constexpr int64_t kSide = 512, kElements = 1 << 16, kLarge = 1 << 24;
  constexpr int kDepth = 64;
  // Random: the scheduler folds constants. The sums of its rows are about 1, so that repeated products
  // neither grow nor become denormal numbers, which are slow on some processors.
  const Tensor b = (Tensor::rand({kSide, kSide}) * (2.0 / kSide)).realize();
  const double product = measured_seconds(is_shared, Tensor::rand({kSide, kSide}),
                                          [&](const Tensor& x) { return x.matmul(b); });
  const double chain = measured_seconds(is_shared, Tensor::rand({kElements}), [](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < kDepth; ++i) y = y * 0.5 + 0.25;
    return y;
  });
  const double stream = measured_seconds(is_shared, Tensor::rand({kLarge}),
                                         [](const Tensor& x) { return x * 0.5 + 0.25; });
  return {2.0 * kSide * kSide * kSide / product, 2.0 * kDepth * kElements / chain,
          2.0 * sizeof(float) * kLarge / stream};
}

/// Of all ranks.
std::vector<float> sum_of(const std::vector<float>& values) {
  distributed::Backend& backend = *distributed::backend();
  std::vector<uint32_t> ranks(backend.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<float> sums(values.size());
  backend.run({.send = reinterpret_cast<const std::byte*>(values.data()),
               .receive = reinterpret_cast<std::byte*>(sums.data()),
               .counts = {static_cast<int64_t>(values.size())},
               .group = ranks,
               .tensor = "values"});
  return sums;
}

/// The line through the times of all-reduces that has the least relative errors.
scale::Link measure_link() {
  const auto ranks = static_cast<double>(distributed::size());
  double sums[5] = {};  // of w, w x, w x x, w y, w x y
  for (const size_t count :
       {size_t{16}, size_t{1} << 12, size_t{1} << 16, size_t{1} << 19, size_t{1} << 21}) {
    const std::vector<float> values(count, 1);
    const double seconds = median_seconds(kLinkRounds,
                                          [&] {
                                            distributed::barrier();
                                            sum_of(values);
                                          }) -
                           median_seconds(kLinkRounds, [] { distributed::barrier(); });
    const double y = std::max(seconds, 1e-7) / 2;  // an all-reduce has two rounds
    const double x = (ranks - 1) / ranks * static_cast<double>(count * sizeof(float));
    const double terms[] = {1, x, x * x, y, x * y};
    for (size_t i = 0; i < std::size(terms); ++i) sums[i] += terms[i] / (y * y);
  }
  const double determinant = sums[0] * sums[2] - sums[1] * sums[1];
  const double slope = (sums[0] * sums[4] - sums[1] * sums[3]) / determinant;
  const double latency = (sums[3] * sums[2] - sums[4] * sums[1]) / determinant;
  require(slope > 0, "[plan-scale] the measured times of the link do not grow with the bytes");
  return {1 / slope, std::max(latency, 0.0), scale::Algorithm::Direct};
}

scale::Device device_with(const Rates& rates) {
  runtime::Device& device = runtime::Registry::instance().default_device();
  const engine::Session::Lock lock;
  engine::Session& session = engine::Session::current();
  const uint32_t number = session.default_device();
  scale::Device made{
      .name = device.info().name,
      .memory_bytes = static_cast<double>(device.info().memory_bytes),
      .memory_rate = rates.memory,
      .vector_rate = rates.vector,
      .matrix_rate = {{DType::F32, rates.matrix}},
      .planning = engine::plan_options(session.state().devices, std::span(&number, 1))};
  const cost::Machine& machine = made.planning.machine;
  made.launch_seconds = machine.wake_cycles / machine.cycles_a_second;
  made.is_gpu = false;
  return made;
}

}  // namespace

int measure_machine(const std::string& path) {
  require(check_replaceable(path) == 0, "[plan-scale] {} cannot be written: {}", path,
          file_error_text(check_replaceable(path)));
  distributed::init();
  runtime::Device& device = runtime::Registry::instance().default_device();
  require(device.caps().subgroup_size <= 1,
          "[plan-scale] --measure measures processors; {} is no processor: write its file from its "
          "data sheet, as those that are shipped",
          device.name());
  const int ranks = distributed::size();
  Rates alone = measure_rates(false);  // compiles the kernels in every rank
  scale::Machine machine;
  if (ranks > 1) {
    distributed::barrier();
    if (distributed::rank() == 0) alone = measure_rates(false);
    distributed::barrier();
    const Rates own = measure_rates(true);
    const std::vector<float> all =
        sum_of({static_cast<float>(own.matrix), static_cast<float>(own.memory)});
    machine.link = measure_link();
    machine.shared_compute = std::min(1.0, all[0] / (ranks * alone.matrix));
    machine.shared_memory = std::min(1.0, all[1] / (ranks * alone.memory));
  }
  if (distributed::rank() != 0) return 0;
  machine.devices_per_node = static_cast<uint32_t>(ranks);
  machine.device = device_with(alone);
  machine.device.memory_bytes /= ranks;
  machine.name = fmt::format("{} processes on {}", ranks, machine.device.name);
  const std::string text = scale::to_json(machine, device.info().arch);
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  const int error = replace_file(path, std::span(&part, 1));
  require(error == 0, "[plan-scale] {} cannot be written: {}", path, file_error_text(error));
  return 0;
}

}  // namespace plugrad::tools
