// Prints textual IR: one node a line, sources first, the roots in the last line:
//   %0 = const index 8
//   %1 = range index %0 axis=2 kind=reduce
//   %2 = reshape f32 %7 [4, 8]
//   %3 = reduce f32 %2 [add, 1]
//   return %3
#pragma once

#include <span>
#include <string>

#include "ir/graph.h"

namespace plugrad {

enum class Numbering : uint8_t {
  Ids,       ///< %n is node n, as in traces and messages
  FromZero,  ///< by position in the text: equal graphs give equal text
};

std::string print(const Graph& graph, std::span<const Id> roots,
                  Numbering numbering = Numbering::Ids);
inline std::string print(const Graph& graph, Id root, Numbering numbering = Numbering::Ids) {
  return print(graph, std::span<const Id>(&root, 1), numbering);
}

/// One line, without the lines of its sources and without a newline.
std::string print_node(const Graph& graph, Id id);

/// The node's argument as printed: "[4, 8]"; empty if it has none.
std::string printed_arg(const Graph& graph, Id id);

/// The op's name as printed: "floordiv".
std::string printed_name(Op op);

/// Range kinds as printed, by AxisKind.
inline constexpr const char* kAxisKindNames[] = {"loop",   "reduce", "global", "local", "group",
                                                 "upcast", "unroll", "vector", "warp",  "block"};

}  // namespace plugrad
