// How many vector lanes each node has once ranges have become lanes: a fact filled by one forward
// loop.
#pragma once

#include <algorithm>
#include <vector>

#include "ir/graph.h"

namespace plugrad::codegen {

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
