// Reads the textual IR that printer.h describes. Lines that start with "//" are comments.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace plugrad {

/// Adds the nodes of `text` to the graph and returns the roots of its "return" line, or else the
/// last node. Checks form, number of sources and dtype names; the verifier checks the rest. Errors:
/// User, "[parse] line 3, column 9: …".
std::vector<Id> parse(Graph& graph, std::string_view text);

/// The op with this printed name ("add"); nothing if there is none.
std::optional<Op> op_from_name(std::string_view name);

}  // namespace plugrad
