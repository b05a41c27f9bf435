// Launches the steps of a plan, counts them and prints what DEBUG requests.
#pragma once

#include <span>

#include "base/clock.h"
#include "engine/kernels/kernel_cache.h"
#include "engine/report.h"
#include "runtime/queue/launch_list.h"

namespace plugrad::engine {

/// Lives for one run of a plan; the destructor prints the line of DEBUG=1.
class LaunchLog {
 public:
  explicit LaunchLog(Statistics& statistics);
  ~LaunchLog();
  LaunchLog(const LaunchLog&) = delete;
  LaunchLog& operator=(const LaunchLog&) = delete;

  /// Whether each launch is timed and logged; if so, steps must be launched one by one.
  bool is_timed() const { return timed_; }
  /// The step of a plan that the next launch runs, for traces.
  void at(runtime::LaunchOrigin origin) { origin_ = origin; }
  /// With `time_ns`, waits for the launch to finish.
  void launch(ReadyKernel& kernel, std::span<runtime::Buffer* const> params,
              std::span<const uint64_t> scalars, uint64_t* time_ns = nullptr);
  void launch(runtime::LaunchList& list, bool as_graph);
  /// With a movement, that of the elements by the host.
  void copy(runtime::Buffer& dst, const runtime::Buffer& src,
            const schedule::Movement* movement = nullptr);
  /// Counts and prints the end of a collective: `name` is its kind and, of a bucket, its members.
  void collective(const std::string& name, const runtime::Device& device, uint64_t bytes,
                  uint64_t wait_ns, uint64_t time_ns);

 private:
  void log_run(uint64_t time_ns) const;
  void log_launch(const ReadyKernel& kernel, size_t params, uint64_t time_ns);
  void log_copy(const runtime::Buffer& dst, const runtime::Buffer& src, uint64_t time_ns);

  Statistics& statistics_;
  const int debug_;
  const bool timed_;
  const uint64_t begin_ns_;
  const uint64_t kernels_before_, copies_before_;
  const runtime::Device* last_device_ = nullptr;
  runtime::LaunchOrigin origin_;
};

}  // namespace plugrad::engine
