// How a kernel reaches memory: the stride of an index along a range, and which ranges a node is
// inside of.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "plugrad/plugin_api/device.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {

/// d(index)/d(variable) where the index is affine in it; 0 where it does not depend on it; nothing
/// otherwise. `variable` is a Range or an Iota.
std::optional<int64_t> stride_of(const Graph& g, Id index, Id variable);

/// By how much the index moves, from value 0 of `variable` to each of its values below `count`,
/// where these are numbers: 0, 1, 2, … for consecutive elements, 0, 0, 1, 1, … for (variable // 2).
/// Nothing otherwise.
std::optional<std::vector<int64_t>> index_steps(Graph& g, Simplifier& simplify, Id index,
                                                Id variable, int64_t count);

/// Whether a load of so many lanes may have a gate for each, which compares indices.
inline bool gates_lanes(const pgr_device_caps& caps, uint32_t width) {
  return width <= caps.vector_lanes[PGR_DTYPE_I32];
}

/// The open ranges of every node as a set of bits: a Range opens itself and what its bounds depend
/// on, a Reduce closes its own. A Filled closes its own too, and all Iotas of its stores. Iotas
/// count as ranges. A kernel has at most 128 of both; more is an error.
__extension__ typedef unsigned __int128 RangeSet;

class OpenRanges {
 public:
  explicit OpenRanges(const Graph& graph) : graph_(graph) {}
  RangeSet operator[](Id id);
  /// The bit of a Range or Iota.
  RangeSet bit(Id range);
  bool depends(Id id, Id range) { return ((*this)[id] & bit(range)) != 0; }
  /// The Ranges and Iotas of a set, by ascending id.
  std::vector<Id> members(RangeSet set) const;

 private:
  RangeSet compute(Id id);
  const Graph& graph_;
  std::vector<RangeSet> by_id_;
  std::vector<Id> ranges_;
};

/// Whether the stores may store elements along the range twice: they store sums, and nothing else
/// that lies along the range, which may lie where they store to.
bool may_repeat(const Graph& g, OpenRanges& open, std::span<const Id> stores, Id range);

/// Nodes of `op` reachable from `root`, ascending.
std::vector<Id> nodes_of(const Graph& g, Id root, Op op);

}  // namespace plugrad::codegen
