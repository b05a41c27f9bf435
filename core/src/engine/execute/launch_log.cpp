#include "engine/execute/launch_log.h"

#include <atomic>
#include <new>

#include "base/binding.h"
#include "base/log.h"
#include "base/trace/trace.h"
#include "engine/plan/trace_plan.h"
#include "runtime/memory/mapping.h"
#include "schedule/lower/movement.h"

namespace plugrad::engine {
namespace {

std::atomic<uint64_t> total_ns{0};  // of all kernels of the process, for DEBUG=2

double rate(double amount, uint64_t time_ns) {
  return time_ns == 0 ? 0.0 : amount / static_cast<double>(time_ns);  // per ns: giga per second
}

double megabytes(uint64_t bytes) {
  return static_cast<double>(bytes) * 1e-6;
}

std::string padded(const std::string& text, size_t width) {
  const size_t shown = visible_width(text);
  return shown < width ? text + std::string(width - shown, ' ') : text;
}

void wait_for(const runtime::Buffer& dst, const runtime::Buffer& src) {
  src.device().synchronize();
  if (&src.device() != &dst.device()) dst.device().synchronize();
}

void move(runtime::Buffer& dst, const runtime::Buffer& src, const schedule::Movement& movement) {
  if (runtime::Mapping from(src), to(dst); from && to) {
    movement.run(from.bytes(), to.bytes());
    return to.end();
  }
  std::vector<std::byte> from(src.size_bytes()), to(dst.size_bytes());
  src.copy_out(from.data(), from.size());
  movement.run(from.data(), to.data());
  dst.copy_in(to.data(), to.size());
}

std::string timing(uint64_t time_ns, uint64_t all_ns) {
  const std::string own = fmt::format("{:9.2f}us", static_cast<double>(time_ns) * 1e-3);
  return fmt::format("tm {}/{:9.2f}ms",
                     colored(own, time_ns > 10'000'000 ? Color::Yellow : Color::Plain),
                     static_cast<double>(all_ns) * 1e-6);
}

}  // namespace

LaunchLog::LaunchLog(Statistics& statistics)
    : statistics_(statistics),
      debug_(settings().debug),
      timed_(debug_ >= 2),
      begin_ns_(monotonic_ns()),
      kernels_before_(statistics.kernels_launched),
      copies_before_(statistics.copies) {}

LaunchLog::~LaunchLog() {
  const uint64_t time_ns = monotonic_ns() - begin_ns_;
  statistics_.run_ns += time_ns;
  if (debug_ < 1) return;
  try {
    log_run(time_ns);
  } catch (const std::bad_alloc&) {  // a line less
  }
}

void LaunchLog::log_run(uint64_t time_ns) const {
  std::string memory;
  if (last_device_) {
    const runtime::MemoryStats now = last_device_->memory_stats();
    memory = fmt::format(", {} uses {:.2f} MB, at most {:.2f}", last_device_->name(),
                         megabytes(now.used_bytes), megabytes(now.peak_bytes));
  }
  debug_write(fmt::format("ran {} kernels and {} copies in {:.3f} ms{}\n",
                          statistics_.kernels_launched - kernels_before_,
                          statistics_.copies - copies_before_, static_cast<double>(time_ns) * 1e-6,
                          memory));
}

void LaunchLog::launch(ReadyKernel& ready, std::span<runtime::Buffer* const> params,
                       std::span<const uint64_t> scalars, uint64_t* measured_ns) {
  poll_interruption();
  const codegen::KernelCode& code = ready.code;
  const runtime::Launch launch{
      .buffers = params.first(ready.param_count),
      .scalars = scalars,
      .group_count = {code.group_count[0], code.group_count[1], code.group_count[2]},
      .local_size = {code.local_size[0], code.local_size[1], code.local_size[2]},
      .origin = origin_};
  if (tracing()) trace_kernel(ready, {});
  runtime::Device& device = ready.kernel->device();
  last_device_ = &device;
  ++statistics_.kernels_launched;
  if (!timed_) return device.launch(*ready.kernel, launch, measured_ns);
  uint64_t time_ns = 0;
  device.launch(*ready.kernel, launch, &time_ns);
  log_launch(ready, params.size(), time_ns);
  ++ready.launches;
}

void LaunchLog::launch(runtime::LaunchList& list, bool as_graph) {
  poll_interruption();
  last_device_ = &list.device();
  statistics_.kernels_launched += list.size();
  list.run(as_graph);
}

void LaunchLog::copy(runtime::Buffer& dst, const runtime::Buffer& src,
                     const schedule::Movement* movement) {
  ++statistics_.copies;
  if (timed_) wait_for(dst, src);  // wait for pending work, which must not count as copy time
  const uint64_t start_ns = monotonic_ns();
  if (movement)
    move(dst, src, *movement);
  else
    runtime::copy(dst, 0, src, 0, dst.size_bytes());
  if (timed_) wait_for(dst, src);
  if (timed_) log_copy(dst, src, monotonic_ns() - start_ns);
}

void LaunchLog::collective(const std::string& name, const runtime::Device& device, uint64_t bytes,
                           uint64_t wait_ns, uint64_t time_ns) {
  ++statistics_.collectives;
  statistics_.collective_bytes += bytes;
  statistics_.collective_wait_ns += wait_ns;
  if (!timed_) return;
  debug_write(
      fmt::format("{:<8} {:>5} {} arg  2 mem {:8.2f} MB {} ({:7.2f} GB/s), waited {:.2f}us\n",
                  device.name(), "", padded(colored(name, Color::Yellow), 42),
                  megabytes(device.memory_stats().used_bytes), timing(time_ns, total_ns += wait_ns),
                  rate(static_cast<double>(bytes), time_ns), static_cast<double>(wait_ns) * 1e-3));
}

void LaunchLog::log_launch(const ReadyKernel& ready, size_t params, uint64_t time_ns) {
  const runtime::Device& device = ready.kernel->device();
  const codegen::Estimates& work = ready.code.estimates;
  const std::string number = fmt::format("{:5}", statistics_.kernels_launched);
  debug_write(
      fmt::format("{:<8} {} {} arg {:2} mem {:8.2f} MB {} ({:8.2f} GFLOP/s {:7.2f} GB/s)\n",
                  device.name(), colored(number, ready.launches == 0 ? Color::Green : Color::Plain),
                  padded(as_shown(ready.code.colored_name), 42), params,
                  megabytes(device.memory_stats().used_bytes), timing(time_ns, total_ns += time_ns),
                  rate(static_cast<double>(work.flops), time_ns),
                  rate(static_cast<double>(work.bytes), time_ns)));
}

void LaunchLog::log_copy(const runtime::Buffer& dst, const runtime::Buffer& src, uint64_t time_ns) {
  const std::string name =
      fmt::format("copy {} bytes from {}", dst.size_bytes(), src.device().name());
  debug_write(fmt::format(
      "{:<8} {:>5} {} arg  2 mem {:8.2f} MB {} ({:7.2f} GB/s)\n", dst.device().name(), "",
      padded(colored(name, Color::Yellow), 42), megabytes(dst.device().memory_stats().used_bytes),
      timing(time_ns, total_ns += time_ns), rate(static_cast<double>(dst.size_bytes()), time_ns)));
}

}  // namespace plugrad::engine
