// SPDX-License-Identifier: Apache-2.0
// Validates the nodes of a "pgr.graph".
#pragma once

#include <span>
#include <string>

#include "plugrad/plugin_api/graph.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::sdk {

// The dependencies of node `number`. Throws StatusError (INVALID_ARGUMENT) unless all are earlier
// nodes.
inline std::span<const uint32_t> dependencies_of(const pgr_graph_node& node, uint32_t number) {
  const std::string name = "node " + std::to_string(number);
  require(node.depends || node.depends_count == 0, PGR_STATUS_INVALID_ARGUMENT,
          name + ": depends is NULL");
  const std::span<const uint32_t> earlier(node.depends, node.depends_count);
  for (const uint32_t other : earlier)
    require(other < number, PGR_STATUS_INVALID_ARGUMENT,
            name + " depends on node " + std::to_string(other) + ", which is not an earlier one");
  return earlier;
}

}  // namespace plugrad::sdk
