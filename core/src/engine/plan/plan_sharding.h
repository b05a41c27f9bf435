// The sharded values of a plan as text, for traces (docs/trace-format.md).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "sharding/lowering.h"

namespace plugrad::engine {

struct SessionState;

struct PlanSharding {
  struct Part {
    int64_t whole = -1;  // id of the sharded value; -1: the node is no part of one
    uint32_t position = 0;
    std::string spec;
  };
  std::string meshes, values;  // lists of JSON objects
  std::vector<Part> parts;     // by value of the plan's graph
};

/// Of the plan made last, if its graph was kept; null if it has no sharded values. `graph` and
/// `shapes`: the session's.
std::shared_ptr<const PlanSharding> plan_sharding(sharding::Lowering& lowering,
                                                  const SessionState& state, const Graph& graph,
                                                  Shapes& shapes,
                                                  const schedule::ScheduledGraph& scheduled);

}  // namespace plugrad::engine
