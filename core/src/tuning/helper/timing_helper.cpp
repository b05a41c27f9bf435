#include "tuning/helper/timing_helper.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/check.h"
#include "base/child_process.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/storage/disk_cache.h"
#include "runtime/device/device_state.h"
#include "runtime/device/host_api.h"
#include "runtime/device/plugin.h"
#include "tuning/helper/contents.h"

namespace plugrad::tuning {
namespace {

constexpr double kStartSeconds = 60;  // time for a driver to initialise
constexpr double kCheckSeconds = 60;  // to compile and run a kernel without optimisations

}  // namespace

std::string timing_helper_path() {
  const std::string own = runtime::own_directory();
  for (const char* place : {"/plugrad/plugrad-measure", "/../lib/plugrad/plugrad-measure"}) {
    std::error_code error;
    const auto path = std::filesystem::canonical(own + place, error);
    if (!error && access(path.c_str(), X_OK) == 0) return path.string();
  }
  return {};
}

std::vector<std::string> helper_environment(const runtime::Device& device) {
  const Settings& now = settings();
  auto& state = const_cast<runtime::Device&>(device).state();
  return {"DEV=" + device.name(),
          "DEVICE=",
          "PLUGRAD_PLUGIN_FILES=" + state.plugin->path(),
          "PLUGRAD_TRUST_PLUGINS=" + now.trust_plugins,
          "PLUGRAD_VISIBLE_DEVICES=" + now.visible_devices,
          "PLUGRAD_CACHE_DIR=" + cache_directory(),
          fmt::format("PLUGRAD_THREADS={}", now.threads),
          "PLUGRAD_CPU_TARGET=" + now.cpu_target,
          "PLUGRAD_LAYERS=",
          "PLUGRAD_TRACE=",
          "VIZ=0",
          "PLUGRAD_DUMP=",
          "DEBUG=0",
          "BEAM=0"};
}

struct TimingHelper::Helper {
  FileDescriptor socket;
  ChildProcess process;

  uint64_t cpu_ns() const {
    clockid_t clock{};
    timespec time{};
    if (clock_getcpuclockid(process.pid(), &clock) != 0 || clock_gettime(clock, &time) != 0)
      return 0;
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
  }

  /// How it ended; waits shortly for a process that is ending.
  std::string end() {
    for (int attempt = 0; attempt < 100; ++attempt) {
      if (const auto status = process.status())
        return "it ended the process with " + describe_end(*status);
      usleep(10'000);
    }
    return "the process stopped answering";
  }
};

// A message of the helper, or how it was lost.
struct TimingHelper::Event {
  MessageKind kind{};
  std::vector<std::byte> bytes;
  std::string loss;
  bool is_end = false;  // the process ended

  uint32_t number() const { return ByteReader(bytes).get<uint32_t>(); }
};

TimingHelper::TimingHelper(runtime::Device& device, Limits limits)
    : device_(device), limits_(limits) {}
TimingHelper::~TimingHelper() = default;

void TimingHelper::set_params(std::vector<ParamSpec> params) {
  params_ = std::move(params);
  params_sent_ = false;
}

void TimingHelper::interrupt() {
  const std::lock_guard lock(mutex_);
  is_interrupted_ = true;
  if (helper_) helper_->process.signal(SIGKILL);
}

uint64_t TimingHelper::helper_ns() const {
  return lost_helpers_ns_ + (helper_ ? helper_->cpu_ns() : 0);
}

void TimingHelper::start() {
  const std::lock_guard lock(mutex_);
  if (is_interrupted_) fail(ErrorKind::Device, "[search] the process ends");
  const std::string path = timing_helper_path();
  if (path.empty())
    fail(ErrorKind::Device,
         "[search] the program plugrad/plugrad-measure, which times kernels, is not beside {}",
         runtime::own_directory());
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    fail(ErrorKind::Device, "[search] no socket for {}: {}", path, std::strerror(errno));
  FileDescriptor ours(pair[0]);
  const FileDescriptor theirs(pair[1]);
  ProcessSpec spec{.program = path,
                   .environment = environment_with(helper_environment(device_)),
                   .descriptors = {{theirs.get(), STDIN_FILENO}},
                   .leads_group = true};  // Ctrl-C reaches the program, which ends the helper
  if (!debugging(2)) spec.descriptors.emplace_back(-1, STDERR_FILENO);
  try {
    helper_.reset(new Helper{std::move(ours), ChildProcess(spec)});
  } catch (const std::system_error& error) {
    fail(ErrorKind::Device, "[search] {} cannot be started: {}", path, error.code().message());
  }
  params_sent_ = false;
}

// The next frame; after `limit` seconds, a loss.
TimingHelper::Event TimingHelper::next_event(double limit) {
  Event event;
  const uint64_t deadline = monotonic_ns() + static_cast<uint64_t>(limit * 1e9);
  switch (hear(helper_->socket.get(), deadline, event.kind, event.bytes)) {
    case Received::Frame:
      break;
    case Received::Nothing:
      event.loss = fmt::format("it had not ended after {:.1f} s", limit);
      break;
    case Received::Gone: {
      const std::lock_guard lock(mutex_);
      event.loss = helper_->end();
      event.is_end = true;
      break;
    }
  }
  if (event.loss.empty() && event.kind == MessageKind::Failed)
    fail(ErrorKind::Device, "[search] {}: {}", device_.name(), ByteReader(event.bytes).get_text());
  return event;
}

void TimingHelper::lose() {
  lost_helpers_ns_ = helper_ns();
  const std::lock_guard lock(mutex_);
  helper_.reset();
  ++losses_;
}

void TimingHelper::need_helper() {
  const auto ready = [&](const char* what) {
    const Event event = next_event(kStartSeconds);
    if (event.loss.empty() && event.kind == MessageKind::Ready) return;
    lose();
    fail(ErrorKind::Device, "[search] the helper for {} {}: {}", device_.name(), what, event.loss);
  };
  if (!helper_) {
    start();
    ready("did not start");
  }
  if (params_sent_) return;
  ByteWriter out;
  out.put(static_cast<uint32_t>(params_.size()));
  for (const ParamSpec& param : params_) out.put(param);
  say(helper_->socket.get(), MessageKind::Params, out.bytes());
  ready("could not make the buffers");
  params_sent_ = true;
}

void TimingHelper::note(const Event& event, std::vector<uint32_t>& compiling,
                        std::optional<uint32_t>& running) const {
  if (event.kind == MessageKind::Compiling) compiling.push_back(event.number());
  if (event.kind == MessageKind::Compiled || event.kind == MessageKind::Refused)
    std::erase(compiling, event.number());
  if (event.kind == MessageKind::Running) running = event.number();
}

std::vector<TimingHelper::Timing> TimingHelper::time(
    std::span<const codegen::KernelCode* const> kernels, const TimeSpec& spec) {
  std::vector<Timing> timings(kernels.size(), Timing{kInfinity, {}});
  std::vector<uint32_t> left;  // indices of kernels not timed yet
  for (uint32_t i = 0; i < kernels.size(); ++i) left.push_back(i);
  while (!left.empty()) {
    need_helper();
    ByteWriter out;
    out.put(spec).put(static_cast<uint32_t>(left.size()));
    for (uint32_t i : left) put_kernel(out, *kernels[i]);
    say(helper_->socket.get(), MessageKind::Time, out.bytes());
    std::vector<uint32_t> compiling, guilty;
    std::optional<uint32_t> running;
    for (;;) {
      const Event event = next_event(running ? limits_.launch : limits_.compile);
      if (!event.loss.empty()) {
        guilty = running ? std::vector{*running} : compiling;
        for (uint32_t at : guilty)
          timings[left[at]] = {kInfinity, event.loss, running || event.is_end};
        lose();
        break;
      }
      note(event, compiling, running);
      ByteReader in(event.bytes);
      if (event.kind == MessageKind::Refused) {
        const auto at = in.get<uint32_t>();
        if (at < left.size()) timings[left[at]].problem = in.get_text();
      }
      if (event.kind != MessageKind::Times) continue;
      for (uint32_t i : left) timings[i].seconds = in.get<double>();
      return timings;
    }
    if (guilty.empty())
      fail(ErrorKind::Device, "[search] the helper for {} was lost", device_.name());
    std::ranges::sort(guilty, std::greater{});
    for (uint32_t at : guilty) left.erase(left.begin() + at);
  }
  return timings;
}

std::string TimingHelper::check(const codegen::KernelCode& candidate,
                                const codegen::KernelCode& reference,
                                const codegen::KernelCode& whole, const CheckSpec& spec) {
  need_helper();
  ByteWriter out;
  out.put(spec);
  for (const auto* kernel : {&candidate, &reference, &whole}) put_kernel(out, *kernel);
  say(helper_->socket.get(), MessageKind::Check, out.bytes());
  for (;;) {
    const Event event = next_event(kCheckSeconds);
    if (!event.loss.empty()) {
      lose();
      return event.loss;
    }
    if (event.kind == MessageKind::Verdict) return ByteReader(event.bytes).get_text();
  }
}

}  // namespace plugrad::tuning
