// Memory accesses of a kernel: the stride of an index along a range, the ranges that each node
// depends on, and the vector lanes of each node.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "ir/graph.h"
#include "plugrad/plugin_api/device.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {

/// d(index)/d(variable) where the index is affine in it; 0 where it does not depend on it; nothing
/// otherwise. `variable` is a Range or an Iota.
std::optional<int64_t> stride_of(const Graph& g, Id index, Id variable);

/// The offsets of the index for values 0 to count - 1 of `variable`, relative to value 0, if they
/// are constants: 0, 1, 2, … for consecutive elements; 0, 0, 1, 1, … for (variable // 2). Nothing
/// otherwise.
std::optional<std::vector<int64_t>> index_steps(Graph& g, Simplifier& simplify, Id index,
                                                Id variable, int64_t count);

/// Whether a load of `width` lanes may have one gate per lane. The mask is a vector of 32-bit
/// lanes, so the device's width of i32 vectors limits `width`.
inline bool gates_lanes(const pgr_device_caps& caps, uint32_t width) {
  return width <= caps.vector_lanes[PGR_DTYPE_I32];
}

/// A bit for each range of a kernel; more than 128 is an error.
__extension__ typedef unsigned __int128 RangeSet;

/// The open ranges of every node: those that its value depends on and that no node below it has
/// closed. A Range opens itself and the ranges of its bounds. A Reduce and a Filled close the
/// ranges that they run over, a product of whole tiles (Wmma) its element ranges. A Filled and a
/// Lane of one lane also close all Iotas. Iotas count as ranges.
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

/// Whether elements along the range may be stored twice with the same result: each store that
/// depends on the range has no gate, reads no parameter that `stores` write, and its value contains
/// a Reduce, outside which no load depends on the range.
bool may_repeat(const Graph& g, OpenRanges& open, std::span<const Id> stores, Id range);

/// Nodes of `op` reachable from `root`, ascending.
std::vector<Id> nodes_of(const Graph& g, Id root, Op op);

constexpr uint64_t lane_arg(uint32_t first, uint32_t lanes) {
  return first | static_cast<uint64_t>(lanes) << 16;
}

class Lanes {
 public:
  explicit Lanes(const Graph& graph) : graph_(graph) {}
  uint32_t operator[](Id id) {
    while (by_id_.size() <= id) by_id_.push_back(compute(static_cast<Id>(by_id_.size())));
    return by_id_[id];
  }

 private:
  uint32_t compute(Id id) const {
    const Node& n = graph_[id];
    switch (n.op) {
      case Op::Iota:
      case Op::Vector:
        return static_cast<uint32_t>(n.arg);
      case Op::Lane:
        return static_cast<uint32_t>(n.arg >> 16);
      case Op::Filled:
        return 1;
      case Op::Load:
        return std::max<uint32_t>(1, static_cast<uint32_t>(n.arg));
      case Op::Wmma:
        return by_id_[graph_.sources(n)[2]];
      default:
        break;
    }
    uint32_t lanes = 1;
    for (Id s : graph_.sources(n)) lanes = std::max(lanes, by_id_[s]);
    return lanes;
  }
  const Graph& graph_;
  std::vector<uint32_t> by_id_;
};

}  // namespace plugrad::codegen
