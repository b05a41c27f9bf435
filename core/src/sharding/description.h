// The sharded values of a graph with their specs and movements, for descriptions and traces.
#pragma once

#include <vector>

#include "sharding/collectives.h"

namespace plugrad::sharding {

struct ValueMovement {
  CollectiveKind kind;
  AxisSet along = 0;
  Id value = kNoId;
  uint64_t bytes = 0;  // of the whole value
};

/// A node on a mesh, or the Copy of one to a single device.
struct ShardedNode {
  Id id = kNoId;
  const Mesh* mesh = nullptr;
  Spec spec;
  std::vector<ValueMovement> before;  // so that it can be computed
  std::vector<ValueMovement> after;   // of its terms, so that it can be stored
};

/// The part of a sharded value that a node of one device computes.
struct PartOf {
  Id whole = kNoId;
  Spec spec;
  uint32_t position = 0;
};

}  // namespace plugrad::sharding
