#include "runtime/queue/device_trace.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "runtime/device/device_state.h"
#include "runtime/queue/exit_wait.h"

namespace plugrad::runtime {
namespace {

constexpr std::size_t kPollAbove = 16;  // pieces of work that may wait before each call asks again
constexpr std::uint64_t kCalibrateEveryNs = 5'000'000'000;     // clocks drift by some 10 us in this
constexpr std::uint64_t kLongestTraceWaitNs = 10'000'000'000;  // wait for a device at exit

void collect_all() {
  each_waiting([](DeviceState& device) { device.trace.collect(kLongestTraceWaitNs); });
}

void collect_finished() {
  each_waiting([](DeviceState& device) { device.trace.collect(0); });
}

// Outside a trace's mutex, which those functions take.
void register_collectors() {
  static std::once_flag done;
  std::call_once(done, [] {
    before_devices_end(collect_all);
    trace::before_writing(collect_finished);
  });
}

}  // namespace

trace::JsonLine kernel_line(std::uint32_t id, std::uint32_t device, const Kernel& kernel) {
  trace::JsonLine line("kernel");
  line.add("id", id).add("device", device).add("name", kernel.name());
  line.add("source", kernel.source()).add("compile_ns", kernel.compile_ns());
  line.add("from_cache", kernel.from_disk_cache());
  return line;
}

std::uint32_t DeviceTrace::id() {
  if (const std::uint32_t known = id_.load(std::memory_order_acquire)) return known;
  register_collectors();
  const std::lock_guard lock(mutex_);
  define();
  return id_;
}

// Requires the mutex, as do all functions below that are private.
void DeviceTrace::define() {
  if (id_ != 0) return;
  choose_clock();
  const std::uint32_t id = trace::new_id();
  const std::string& name = name_.empty() ? device_.name : name_;
  trace::define(trace::JsonLine("device")
                    .add("id", id)
                    .add("name", name)
                    .add("arch", device_.info.arch)
                    .add("hardware", device_.info.name)
                    .add("clock", clock_ == Clock::Device ? "device" : "host")
                    .add("clock_error_ns", error_ns_)
                    .add("memory_bytes", device_.info.memory_bytes)
                    .str());
  tracks_[kMain].id = trace::queue_track(id, "queue", name);
  id_.store(id, std::memory_order_release);
}

void DeviceTrace::choose_clock() {
  const pgr_queue_api& q = device_.queue;
  const bool has_events = device_.timeline.is_kept();
  clock_ = has_events ? Clock::Seen : Clock::Synchronous;
  if (!has_events || !device_.has_profile || !offered(q.event_time) ||
      !offered(device_.profile.calibrate))
    return;
  clock_ = Clock::Device;
  calibrate();
}

void DeviceTrace::calibrate() {
  std::uint64_t device_ns = 0, host_ns = 0, error_ns = 0;
  calibrated_ns_ = monotonic_ns();
  device_.calls.quietly("calibrate", [&] {
    if (device_.profile.calibrate(device_.handle, &device_ns, &host_ns, &error_ns, nullptr) ==
        PGR_STATUS_OK) {
      offset_ns_ = static_cast<std::int64_t>(host_ns - device_ns);
      error_ns_ = error_ns;
    } else if (error_ns_ == 0) {
      clock_ = Clock::Seen;
    }
  });
}

std::uint32_t DeviceTrace::id_of(const Kernel& kernel) {
  if (kernel.trace_id() == 0) {
    const std::uint32_t id = trace::new_id();
    trace::define(kernel_line(id, id_, kernel).str());
    kernel.set_trace_id(id);
  }
  return kernel.trace_id();
}

void DeviceTrace::launched(const Kernel& kernel, std::uint64_t submit_ns, LaunchOrigin origin,
                           std::uint64_t measured_ns) {
  const std::uint64_t returned_ns = monotonic_ns();
  register_collectors();
  const std::lock_guard lock(mutex_);
  define();
  Work work{nullptr, submit_ns, returned_ns, measured_ns, true, {}, {}};
  work.launch.kernel = id_of(kernel);
  work.launch.plan = origin.plan;
  work.launch.step = origin.step;
  add(kMain, nullptr, std::move(work));
}

void DeviceTrace::copied(Queue queue, pgr_queue* handle, trace::Direction direction,
                         std::uint64_t bytes, std::uint64_t submit_ns) {
  const std::uint64_t returned_ns = monotonic_ns();
  register_collectors();
  const std::lock_guard lock(mutex_);
  define();
  if (tracks_[queue].id == 0)
    tracks_[queue].id =
        trace::queue_track(id_, "transfers", (name_.empty() ? device_.name : name_) + " transfers");
  Work work{nullptr, submit_ns, returned_ns, 0, false, {}, {}};
  work.copy.direction = direction;
  work.copy.bytes = bytes;
  add(queue, handle, std::move(work));
}

void DeviceTrace::add(Queue queue, pgr_queue* handle, Work work) {
  Track& track = tracks_[queue];
  if (clock_ == Clock::Synchronous) return finish(track, work, work.returned_ns);
  device_.calls.quietly("record", [&] {
    if (device_.queue.record(device_.handle, handle, &work.event, nullptr) != PGR_STATUS_OK)
      work.event = nullptr;
  });
  if (!work.event) return finish(track, work, work.returned_ns);
  track.pending.push_back(work);
  if (track.pending.size() > kPollAbove) collect_from(track, 0);
}

// Work whose event fails has ended as far as anyone can tell.
bool DeviceTrace::has_ended(pgr_event* event, std::uint64_t timeout_ns, std::uint64_t& end_ns) {
  pgr_status status = PGR_STATUS_NOT_READY;
  std::uint64_t device_ns = 0;
  device_.calls.quietly("event_time", [&] {
    if (clock_ != Clock::Device || timeout_ns != 0)
      status = device_.queue.event_wait(device_.handle, event, timeout_ns, nullptr);
    if (clock_ == Clock::Device)
      status = device_.queue.event_time(device_.handle, event, &device_ns, nullptr);
  });
  if (status == PGR_STATUS_NOT_READY || status == PGR_STATUS_TIMED_OUT) return false;
  end_ns = monotonic_ns();
  if (clock_ == Clock::Device && status == PGR_STATUS_OK)
    end_ns = std::min(end_ns, device_ns + static_cast<std::uint64_t>(offset_ns_));
  return true;
}

void DeviceTrace::collect_from(Track& track, std::uint64_t timeout_ns) {
  if (clock_ == Clock::Device && monotonic_ns() - calibrated_ns_ > kCalibrateEveryNs) calibrate();
  while (!track.pending.empty()) {
    Work& first = track.pending.front();
    std::uint64_t end_ns = 0;
    if (!has_ended(first.event, timeout_ns, end_ns)) return;
    finish(track, first, end_ns);
    device_.calls.quietly("event_destroy",
                          [&] { device_.queue.event_destroy(device_.handle, first.event); });
    track.pending.pop_front();
  }
}

void DeviceTrace::finish(Track& track, Work& work, std::uint64_t end_ns) {
  const std::uint64_t given_ns = end_ns > work.returned_ns ? work.returned_ns : work.submit_ns;
  std::uint64_t start_ns = std::max(given_ns, track.last_end_ns);
  if (work.measured_ns != 0 && end_ns > work.measured_ns)
    start_ns = std::max(end_ns - work.measured_ns, track.last_end_ns);
  const std::uint64_t duration_ns = end_ns > start_ns ? end_ns - start_ns : 0;
  track.last_end_ns = std::max(track.last_end_ns, end_ns);
  if (work.is_launch) {
    work.launch.track = track.id;
    work.launch.start_ns = start_ns;
    work.launch.duration_ns = duration_ns;
    work.launch.submit_ns = clock_ == Clock::Synchronous ? 0 : work.submit_ns;
    trace::record(work.launch);
    return;
  }
  work.copy.track = track.id;
  work.copy.start_ns = start_ns;
  work.copy.duration_ns = duration_ns;
  trace::record(work.copy);
}

void DeviceTrace::waited(std::uint64_t begin_ns) {
  trace::record(trace::Wait{trace::thread_track(), id(), begin_ns, monotonic_ns() - begin_ns});
  const std::lock_guard lock(mutex_);
  if (clock_ != Clock::Seen) return;
  for (Track& track : tracks_) collect_from(track, 0);  // the end of what was waited for
}

void DeviceTrace::memory(std::uint64_t used_bytes, std::uint64_t cached_bytes,
                         std::int64_t change_bytes, const pgr_buffer* buffer) {
  trace::record(trace::Memory{id(), monotonic_ns(), used_bytes, cached_bytes, change_bytes,
                              reinterpret_cast<std::uintptr_t>(buffer)});
}

void DeviceTrace::collect(std::uint64_t timeout_ns) noexcept {
  if (!device_.calls.is_reachable() || device_.calls.is_lost()) return;
  try {
    const std::lock_guard lock(mutex_);
    for (Track& track : tracks_) collect_from(track, timeout_ns);
  } catch (...) {  // the end of the process may lose events
  }
}

void DeviceTrace::shut_down() noexcept {
  collect(kLongestTraceWaitNs);
  const std::lock_guard lock(mutex_);
  for (Track& track : tracks_) {
    for (const Work& work : track.pending)
      device_.calls.quietly("event_destroy",
                            [&] { device_.queue.event_destroy(device_.handle, work.event); });
    track.pending.clear();
  }
}

}  // namespace plugrad::runtime
