// Runs the collectives of a plan through the backend of the program (distributed/backend.h), beside
// the kernels between their starts and their ends.
#pragma once

#include <map>
#include <memory>
#include <span>

#include "engine/execute/launch_log.h"
#include "engine/plan/ready_plan.h"
#include "runtime/device/device.h"

namespace plugrad::engine {

/// Those of one run. The members of a bucket are packed into one call.
class CollectivesInFlight {
 public:
  /// `buffers`: by plan buffer.
  CollectivesInFlight(const ReadyPlan& ready, std::span<runtime::Buffer* const> buffers,
                      LaunchLog& log);
  /// Waits for what an error left behind: the other processes may still write into its memory.
  ~CollectivesInFlight();
  CollectivesInFlight(const CollectivesInFlight&) = delete;
  CollectivesInFlight& operator=(const CollectivesInFlight&) = delete;

  /// Waits for the sources, not for the other processes. Errors: as distributed::Backend::start.
  void start(const schedule::Step& step);
  /// Errors: as distributed::Backend::wait.
  void wait(const schedule::Step& step);

 private:
  struct Started;
  void trace_call(const Started& call, uint64_t done_ns, uint64_t wait_begin_ns,
                  uint64_t wait_end_ns) const;

  const schedule::Plan& plan_;
  const uint32_t trace_id_;  // of the plan
  std::span<runtime::Buffer* const> buffers_;
  LaunchLog& log_;
  std::map<uint32_t, std::unique_ptr<Started>> started_;  // by their first destination
};

}  // namespace plugrad::engine
