// Turns the steps of a plan into launch lists, one for each run of consecutive steps on one device,
// with the copies and loops between them. A run of the plan only rebinds buffers.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/execute/launch_log.h"
#include "engine/value.h"
#include "runtime/queue/launch_list.h"

namespace plugrad::engine {

struct ReadyPlan;
struct Temporaries;

class PreparedSteps {
 public:
  explicit PreparedSteps(const ReadyPlan& ready);

  /// `buffers`: by plan buffer; null for buffers that no step uses. Creates the device graphs, or
  /// rebinds them.
  void set_buffers(const ReadyPlan& ready, std::span<runtime::Buffer* const> buffers);
  /// Gives the launches the scalars of steps whose numbers change from run to run.
  void set_scalars(const ReadyPlan& ready);
  /// Runs with the buffers that were set; as device graphs where a recording runs the plan.
  void run(const ReadyPlan& ready, std::span<runtime::Buffer* const> buffers,
           std::span<const ValuePtr> values, LaunchLog& log);

 private:
  struct Part {
    std::unique_ptr<runtime::LaunchList> launches;  // null: a copy, a loop, a collective
    std::vector<uint32_t> places;                   // plan buffers that change from run to run
    uint32_t step = 0;                              // the copy or the loop, or the first launch
  };
  void set_temporaries(const ReadyPlan& ready);

  std::vector<Part> parts_;
  uint64_t version_ = 0;  // of the temporaries that are set
};

}  // namespace plugrad::engine
