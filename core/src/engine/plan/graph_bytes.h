// Writes the graph below a node as bytes, and reads it back with the same build.
#pragma once

#include "base/bytes.h"
#include "ir/graph.h"

namespace plugrad::engine {

/// Writes the nodes that `root` reaches, in ascending order of their ids.
void put_graph(ByteWriter& to, const Graph& graph, Id root);

/// Reads the nodes into `graph`, which is empty, and returns the root. Errors: std::out_of_range for
/// bytes that no put_graph() wrote.
Id get_graph(ByteReader& from, Graph& graph);

}  // namespace plugrad::engine
