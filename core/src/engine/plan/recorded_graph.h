// The tensor graph of a plan as the program recorded it, for traces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace plugrad::engine {

struct SessionState;

struct RecordedGraph {
  std::string text;               // textual IR (ir/text/printer.h); input i is the Buffer number i
  std::vector<int64_t> replaces;  // by root: the input that its value replaces; -1: none
};

/// The nodes that the session's last walk of `graph` visited, before any rule simplified them or
/// adapted them to a device.
RecordedGraph recorded_graph(const SessionState& state, const Graph& graph);

}  // namespace plugrad::engine
