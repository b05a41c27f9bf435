// The stage "launches": repeats the recorded launches of a network on the device under test, and
// computes each from the same memory on another device. Where they differ, the network goes on with
// the other device's values, so that later kernels get the inputs that they should.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>

#include "networks/stages.h"
#include "plugrad/error.h"
#include "recordings/recording_player.h"
#include "runtime/checks/compare/judge.h"
#include "runtime/checks/compare/report.h"
#include "runtime/checks/compare/rounding.h"
#include "runtime/checks/compare/values.h"
#include "runtime/checks/live_objects.h"
#include "runtime/registry.h"

namespace plugrad::tools {
namespace {

using runtime::Buffer;
using runtime::HostMemory;
using runtime::KernelLines;
using runtime::LaunchData;
using runtime::RecordedCall;
using Player = RecordingPlayer;

// A compilation or launch on the device under test takes this long at most, times the factor.
constexpr double kLaunchesSeconds = 30;
// Lines of kernel IR that a launch executes. REFERENCE executes 25 million a second, and up to five
// times each where operations may round differently.
constexpr double kReferenceLines = 5e6;  // above, CPU computes the expected values if it can
constexpr double kMostLines = 250e6;     // above, REFERENCE computes only some of the groups
// Later launches of a kernel are compared while its comparisons took less.
constexpr double kSecondsPerKernel = 1;
constexpr size_t kMostShrunk = 3;
constexpr double kShrinkSeconds = 10;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The part of an allocation that a buffer is.
struct Range {
  uint64_t root = 0, offset = 0, bytes = 0;
  bool operator==(const Range&) const = default;
  bool overlaps(const Range& other) const {
    return root == other.root && offset < other.offset + other.bytes &&
           other.offset < offset + bytes;
  }
};

struct WorstElement {
  double ulps = 0;
  std::string place;
};

// The largest distance of two elements, allowed or not.
WorstElement worst_of(const KernelLines& kernel, const LaunchData& data, const HostMemory& got,
                      const HostMemory& expected, bool is_partial) {
  WorstElement worst;
  const std::vector<uint32_t> params = LaunchData::buffer_params(kernel);
  for (size_t i = 0; i < params.size(); ++i) {
    const size_t region = data.region_of[i];
    const uint32_t dtype = kernel.params[params[i]].dtype;
    const uint64_t bytes = runtime::dtype_bytes(dtype);
    if (bytes == 0 || got[region] == expected[region]) continue;
    for (uint64_t at = 0; at < got[region].size() / bytes; ++at) {
      const uint64_t a = runtime::bits_at(got[region], dtype, at);
      const uint64_t b = runtime::bits_at(expected[region], dtype, at);
      if (a == b || (runtime::is_nan(dtype, a) && runtime::is_nan(dtype, b))) continue;
      if (is_partial && b == runtime::bits_at(data.regions[region], dtype, at)) continue;
      const uint64_t ulps = runtime::ulps_between(dtype, a, b);
      const double distance = ulps == UINT64_MAX ? INFINITY : static_cast<double>(ulps);
      if (distance > worst.ulps) worst = {distance, fmt::format("buffer {}[{}]", i, at)};
    }
  }
  return worst;
}

// Elements that a part of the groups does not write must not count: memory that is only written
// starts as the device left it.
void leave_as_computed(const KernelLines& kernel, LaunchData& data, const HostMemory& got) {
  const std::vector<uint32_t> params = LaunchData::buffer_params(kernel);
  std::vector<bool> is_read(data.regions.size());
  for (size_t i = 0; i < params.size(); ++i)
    if (kernel.params[params[i]].flags & PGR_PARAM_READ) is_read[data.region_of[i]] = true;
  for (size_t i = 0; i < data.regions.size(); ++i)
    if (!is_read[i]) data.regions[i] = got[i];
}

class LaunchJudge {
 public:
  LaunchJudge(const NetworkTarget& target, runtime::Device& device)
      : target_(target), device_(device), player_(device) {
    player_.leave_out(target.left_out);
    player_.launch_by([this](const RecordedCall& call, const Player::PlayedKernel& kernel,
                             const runtime::Launch& launch) { judge(call, kernel, launch); });
  }

  void play(const RecordedCall& call) {
    const std::string name = call.facts.value("call", "");
    const auto number = [&](const char* key) { return call.facts.value(key, uint64_t{0}); };
    if (name == "alloc") {
      ranges_[number("buffer")] = {number("buffer"), 0, number("bytes")};
    } else if (name == "part") {
      const Range parent = ranges_[number("parent")];
      ranges_[number("buffer")] = {parent.root, parent.offset + number("offset"), number("bytes")};
    }
    if (name != "kernel") return player_.play(call);
    tell({{"compiling", number("kernel")}, {"name", call.facts.value("name", "")}});
    const TimeLimit limit(kLaunchesSeconds * target_.device.time_limit_factor);
    player_.play(call);
  }

 private:
  struct State {
    runtime::Device* other = nullptr;
    std::string why_not;
    uint64_t groups = 0;  // of the longest axis, that `other` runs
    double seconds = 0;   // of comparisons
    bool is_known = false, differs = false;
  };

  void judge(const RecordedCall& call, const Player::PlayedKernel& kernel,
             const runtime::Launch& launch);
  bool arrange(const RecordedCall& call, const runtime::Launch& launch, LaunchData& data);
  void choose_other(State& state, const Player::PlayedKernel& kernel, const LaunchData& data);
  runtime::Device* find(const std::string& name) const;
  HostMemory read(const LaunchData& data, std::span<Buffer* const> buffers) const;
  void write(const LaunchData& data, std::span<Buffer* const> buffers, const HostMemory& memory);
  void launch_on_device(uint64_t number, const Player::PlayedKernel& kernel,
                        const runtime::Launch& launch);
  void compare(State& state, uint64_t number, const Player::PlayedKernel& kernel, LaunchData data,
               const runtime::Launch& launch);
  void report(uint64_t number, const State& state, const runtime::Finding& finding,
              const WorstElement& worst);

  const NetworkTarget& target_;
  runtime::Device& device_;
  Player player_;
  std::map<uint64_t, Range> ranges_;
  std::map<uint64_t, State> kernels_;
  size_t shrunk_ = 0;
};

// Equal ranges are one region. False for buffers that overlap in part.
bool LaunchJudge::arrange(const RecordedCall& call, const runtime::Launch& launch,
                          LaunchData& data) {
  std::vector<Range> distinct;
  for (const auto& buffer : call.facts.at("buffers")) {
    const Range range = ranges_[buffer.get<uint64_t>()];
    const auto same = std::ranges::find(distinct, range);
    data.region_of.push_back(static_cast<size_t>(same - distinct.begin()));
    if (same != distinct.end()) continue;
    if (std::ranges::any_of(distinct, [&](const Range& one) { return one.overlaps(range); }))
      return false;
    distinct.push_back(range);
  }
  data.regions.resize(distinct.size());
  data.scalars.assign(launch.scalars.begin(), launch.scalars.end());
  data.group_count = launch.group_count;
  data.local_size = launch.local_size;
  return true;
}

HostMemory LaunchJudge::read(const LaunchData& data, std::span<Buffer* const> buffers) const {
  HostMemory memory(data.regions.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    auto& region = memory[data.region_of[i]];
    if (!region.empty()) continue;
    region.resize(buffers[i]->size_bytes());
    buffers[i]->copy_out(region.data(), region.size());
  }
  return memory;
}

void LaunchJudge::write(const LaunchData& data, std::span<Buffer* const> buffers,
                        const HostMemory& memory) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto& region = memory[data.region_of[i]];
    if (!region.empty()) buffers[i]->copy_in(region.data(), region.size());
  }
}

// Null if there is none besides the device itself.
runtime::Device* LaunchJudge::find(const std::string& name) const {
  if (device_.plugin_name() == name) return nullptr;
  try {
    return &runtime::Registry::instance().find_device(name);
  } catch (const Error&) {
    return nullptr;
  }
}

void LaunchJudge::choose_other(State& state, const Player::PlayedKernel& kernel,
                               const LaunchData& data) {
  state.is_known = true;
  const uint64_t all = *std::ranges::max_element(data.group_count);
  state.groups = all;
  const double work = executed_lines(kernel.lines, data.group_count);
  runtime::Device* const reference = find("REFERENCE");
  const bool is_small = work <= kReferenceLines && target_.expected != "CPU";
  if (reference && (is_small || target_.expected == "REFERENCE")) {
    state.other = reference;
  } else if (runtime::Device* const cpu = find("CPU");
             cpu && lacking(kernel.lines, cpu->caps(), device_.caps()).empty()) {
    state.other = cpu;
    return;
  } else {
    state.other = reference;
  }
  if (!state.other) {
    state.why_not = "no other device can compute it";
    return;
  }
  const double most = kMostLines * target_.device.time_limit_factor;
  if (work <= most) return;
  state.groups = static_cast<uint64_t>(static_cast<double>(all) * most / work);
  if (state.groups > 0) return;
  state.other = nullptr;
  state.why_not = fmt::format(
      "one of its {} groups executes {:.2g} instructions, which REFERENCE would take {:.0f} s for; "
      "--time-limit-factor allows more",
      all, work / static_cast<double>(all), work / static_cast<double>(all) / 25e6);
}

void LaunchJudge::launch_on_device(uint64_t number, const Player::PlayedKernel& kernel,
                                   const runtime::Launch& launch) {
  tell({{"launching", number}, {"name", kernel.name}});
  const TimeLimit limit(kLaunchesSeconds * target_.device.time_limit_factor);
  device_.launch(*kernel.kernel, launch);
  device_.synchronize();
}

void LaunchJudge::judge(const RecordedCall& call, const Player::PlayedKernel& kernel,
                        const runtime::Launch& launch) {
  const auto number = call.facts.at("kernel").get<uint64_t>();
  State& state = kernels_[number];
  LaunchData data;
  if (!arrange(call, launch, data)) {
    state.is_known = true;
    state.why_not = "its buffers overlap in part";
  }
  if (!state.is_known) {
    choose_other(state, kernel, data);
    if (!state.other)
      tell({{"kernel", number},
            {"name", kernel.name},
            {"status", "unsupported"},
            {"message", "not compared: " + state.why_not}});
  }
  const bool is_due = state.other && (state.seconds < kSecondsPerKernel || !kernel.kernel);
  if (!is_due) {
    if (kernel.kernel) launch_on_device(number, kernel, launch);
    return;
  }
  const auto start = Clock::now();
  data.regions = read(data, launch.buffers);
  if (kernel.kernel)
    compare(state, number, kernel, std::move(data), launch);
  else
    write(data, launch.buffers, run_on(*state.other, kernel.lines, data, false));
  state.seconds += seconds_since(start);
  tell({{"timed", number}, {"ms", state.seconds * 1e3}});
}

void LaunchJudge::compare(State& state, uint64_t number, const Player::PlayedKernel& kernel,
                          LaunchData data, const runtime::Launch& launch) {
  try {
    launch_on_device(number, kernel, launch);
  } catch (const Error& error) {
    tell({{"kernel", number},
          {"name", kernel.name},
          {"status", "fail"},
          {"message", fmt::format("kernel {} cannot be launched: {}", kernel.name, error.what())}});
    state.differs = true;
    return write(data, launch.buffers, run_on(*state.other, kernel.lines, data, false));
  }
  HostMemory got = read(data, launch.buffers);
  const auto longest = std::ranges::max_element(data.group_count);
  const bool is_partial = state.groups < *longest;
  KernelLines lines = kernel.lines;
  LaunchData part = data;
  if (is_partial) {
    const auto axis = static_cast<size_t>(longest - data.group_count.begin());
    lines.keep_groups(axis, 0, state.groups);
    part.group_count[axis] = state.groups;
    leave_as_computed(lines, part, got);
  }
  const HostMemory expected = run_on(*state.other, lines, part, false);
  const auto difference =
      runtime::judge(lines, part, device_.caps(), *state.other, got, expected, is_partial);
  const WorstElement worst = worst_of(lines, part, got, expected, is_partial);
  if (!difference) {
    tell({{"kernel", number},
          {"name", kernel.name},
          {"status", "pass"},
          {"other", state.other->name()},
          {"ulp", worst.ulps},
          {"where", worst.place}});
    return;
  }
  if (!is_partial) write(data, launch.buffers, expected);
  if (std::exchange(state.differs, true)) return;
  report(number, state,
         {kernel.lines, data, *difference, device_.name(), state.other->name(), std::move(got)},
         worst);
}

void LaunchJudge::report(uint64_t number, const State& state, const runtime::Finding& finding,
                         const WorstElement& worst) {
  const std::string path = write_replay(finding, target_.keep);
  std::string message = describe(finding);
  message += finding.difference.bound > 0
                 ? fmt::format(
                       "\n  the bound is what the allowed roundings of its operations do to "
                       "this element, measured by {} runs on {}",
                       runtime::kMostRoundingVariants, finding.other)
                 : "\n  its operations are exact or correctly rounded, so that all bits must agree";
  nlohmann::json line = {{"kernel", number},   {"name", finding.kernel.name},
                         {"status", "fail"},   {"other", finding.other},
                         {"ulp", worst.ulps},  {"where", worst.place},
                         {"message", message}, {"replay", path}};
  tell(line);
  if (++shrunk_ > kMostShrunk || state.groups < *std::ranges::max_element(finding.data.group_count))
    return;
  // A smaller kernel may crash or hang the device: the difference has been told.
  tell({{"shrinking", number}, {"name", finding.kernel.name}});
  const runtime::CompareOptions options{
      .with = finding.other, .shrink_seconds = kShrinkSeconds, .folder = target_.keep};
  const TimeLimit limit(kShrinkSeconds + 2 * kLaunchesSeconds);
  tell({{"kernel", number},
        {"smallest", describe_smallest(finding, device_, *state.other, options)}});
}

}  // namespace

void judge_launches(const NetworkTarget& target) {
  const std::string path =
      target.model.ends_with(".rec") ? target.model : target.folder + "/calls.rec";
  runtime::RecordingReader reader(path);
  select_device(target.device);
  LaunchJudge judge(target, runtime::Registry::instance().default_device());
  for (RecordedCall call; reader.next(call);) judge.play(call);
  tell({{"is_complete", true}});
}

}  // namespace plugrad::tools
