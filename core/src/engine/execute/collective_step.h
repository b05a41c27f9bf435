// Runs the collectives of a plan through the backend of the program (distributed/backend.h), beside
// the kernels between their starts and their ends.
#pragma once

#include <map>
#include <memory>
#include <span>

#include "engine/execute/launch_log.h"
#include "runtime/device/device.h"
#include "schedule/schedule.h"

namespace plugrad::engine {

/// Those of one run. The members of a bucket are packed into one call.
class CollectivesInFlight {
 public:
  /// `buffers`: by plan buffer.
  CollectivesInFlight(const schedule::Plan& plan, std::span<runtime::Buffer* const> buffers,
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
  const schedule::Plan& plan_;
  std::span<runtime::Buffer* const> buffers_;
  LaunchLog& log_;
  std::map<uint32_t, std::unique_ptr<Started>> started_;  // by their first destination
};

}  // namespace plugrad::engine
