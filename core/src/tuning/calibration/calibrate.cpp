#include "tuning/calibration/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/clock.h"
#include "tuning/calibration/machines.h"
#include "tuning/calibration/probe_kernels.h"

namespace plugrad::tuning {
namespace {

using cost::Probe;

constexpr double kRunSeconds = 0.8;      // seconds; the last run starts while this much is left
constexpr double kLaunchSeconds = 1e-3;  // target length of a launch in seconds
constexpr int kLaunches = 15;            // the fastest counts; fewer if launches are long
constexpr double kLongestLaunch = 0.25;
constexpr uint64_t kFewBlocks = 64;
constexpr uint64_t kMostTurns = 1 << 24;
constexpr double kWakes = 100;        // launches
constexpr uint64_t kWakeTurns = 600;  // by each thread: 10 us, as shorter work stays on one thread

class Bench {
 public:
  explicit Bench(runtime::Device& device) : device_(device), groups_(device.caps().threads) {
    groups_ = std::max<uint64_t>(groups_, 1);
    elements_ = device.allocate(kProbeBytes);
    const float half = 0.5;  // halving sums stay normal numbers
    elements_->fill(std::as_bytes(std::span(&half, 1)));
    device.synchronize();
  }

  cost::Sample measure(const Probe& probe) {
    const Made& made = kernel_of(probe);
    if (probe.kind == Probe::Kind::Wake) return wake(made, probe.all);
    const double block_bytes = 4 * static_cast<double>(made.probe.block_count);
    uint64_t blocks = 1;
    if (block_bytes > 0) blocks = static_cast<uint64_t>(std::max(1.0, probe.bytes / block_bytes));
    const uint64_t groups = probe.all ? groups_ : 1;
    uint64_t turns = 1;
    // An interpreter would take minutes: such a device is not measured.
    const uint64_t few = std::min<uint64_t>(blocks, kFewBlocks);
    launch(made, few, turns, groups);
    const double most = launch(made, few, turns, groups) * static_cast<double>(blocks / few);
    if (most > kLongestLaunch) return {std::numeric_limits<double>::infinity(), 0};
    launch(made, blocks, turns, groups);  // warm up
    double seconds = launch(made, blocks, turns, groups);
    while (seconds < kLaunchSeconds / 2 && turns < kMostTurns) {
      turns *= seconds <= 0 ? 64 : std::clamp<uint64_t>(uint64_t(kLaunchSeconds / seconds), 2, 64);
      seconds = launch(made, blocks, turns, groups);
    }
    double spent = seconds;
    for (int i = 0; i < kLaunches && spent < kLaunches * 2 * kLaunchSeconds; ++i) {
      const double now = launch(made, blocks, turns, groups);
      seconds = std::min(seconds, now);
      spent += now;
    }
    return {seconds, made.probe.work_of_turn * static_cast<double>(blocks * turns)};
  }

 private:
  struct Made {
    ProbeKernel probe;
    std::shared_ptr<runtime::Kernel> kernel;
    std::shared_ptr<runtime::Buffer> results;
  };

  const Made& kernel_of(const Probe& probe) {
    const auto [at, is_new] = made_.try_emplace({probe.kind, probe.all});
    Made& made = at->second;
    if (!is_new) return made;
    const std::string name =
        fmt::format("probe_{}{}", static_cast<int>(probe.kind), probe.all ? "_all" : "");
    made.probe = write_probe(probe.kind, name.c_str(), probe.all ? groups_ : 1, device_.caps());
    made.kernel = device_.compile(made.probe.ir, name, {.contract = false, .keep = false});
    made.results = device_.allocate(kMostProbeGroups * 4 * made.probe.result_count);
    return made;
  }

  void give(const Made& made, uint64_t blocks, uint64_t turns, uint64_t groups, uint64_t* ns) {
    runtime::Buffer* const buffers[] = {made.results.get(), elements_.get()};
    const uint64_t scalars[] = {blocks, turns};
    device_.launch(*made.kernel, {buffers, scalars, {groups, 1, 1}, {1, 1, 1}}, ns);
  }

  double launch(const Made& made, uint64_t blocks, uint64_t turns, uint64_t groups) {
    uint64_t ns = 0;
    give(made, blocks, turns, groups, &ns);
    return static_cast<double>(ns) * 1e-9;
  }

  cost::Sample wake(const Made& made, bool all) {
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kLaunches; ++i) {
      const uint64_t begin = monotonic_ns();
      for (double n = 0; n < kWakes; ++n) give(made, 1, kWakeTurns, all ? groups_ : 1, nullptr);
      device_.synchronize();
      least = std::min(least, static_cast<double>(monotonic_ns() - begin) * 1e-9);
    }
    return {least, kWakes};
  }

  runtime::Device& device_;
  uint64_t groups_;
  std::shared_ptr<runtime::Buffer> elements_;
  std::map<std::pair<Probe::Kind, bool>, Made> made_;
};

}  // namespace

std::optional<cost::Machine> calibrate(runtime::Device& device, std::string& problem) {
  const pgr_device_caps& caps = device.caps();
  problem = "its work-items run in step, and these kernels are of one item";
  if (caps.has_local != 0 && caps.subgroup_size > 1) return std::nullopt;
  problem = fmt::format("it runs {} groups at once, more than {}", caps.threads, kMostProbeGroups);
  if (caps.threads > kMostProbeGroups) return std::nullopt;
  const uint64_t begin = monotonic_ns();
  Bench bench(device);
  const auto left = [&] {
    return kCalibrationSeconds - kRunSeconds - static_cast<double>(monotonic_ns() - begin) * 1e-9;
  };
  return cost::calibrate(
      table_machine_of(device), [&](const Probe& probe) { return bench.measure(probe); }, left,
      problem);
}

}  // namespace plugrad::tuning
