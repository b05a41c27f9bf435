// Records the nodes through which a gradient can flow: marked leaves and float nodes above them.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace plugrad::engine {

/// Facts by id, filled on demand by one forward loop; marking an old node refills from there.
class Tape {
 public:
  /// Makes room for nodes below `size`, so that marking one of them needs no memory.
  void reserve(uint32_t size) {
    if (flags_.capacity() < size) flags_.reserve(size + size / 2);
  }
  void mark_leaf(Id id);
  void unmark_leaf(Id id);
  /// A leaf that its tensor no longer denotes, e.g. after an assignment: gradients still flow to
  /// it, except through ended nodes.
  void mark_earlier(Id id);
  bool is_tracked(const Graph& graph, Id id);
  /// As is_tracked, without the mark on the node itself.
  bool has_tracked_source(const Graph& graph, Id id);
  /// backward() has used the graph of `loss`. Its nodes, save those of `others`, lead to no earlier
  /// leaf from now on, so that what keeps a loss, or a state from step to step, does not keep the
  /// graphs of all steps.
  void end(const Graph& graph, Id loss, const std::vector<bool>& others);
  /// The node was recorded again: what is above it leads to earlier leaves again.
  void resume(const Graph& graph, Id id);
  void clear_leaves();
  /// Whether a leaf was marked since clear_leaves().
  bool has_leaves() const { return has_leaves_; }
  /// The tape of the renumbered graph: keeps which nodes have ended, and no leaves.
  Tape renumbered(std::span<const Id> new_id) const;

 private:
  void mark(Id id, uint8_t mark);
  void set_ended(const Graph& graph, Id id, bool ended, const std::vector<bool>& except);
  uint8_t below(const Graph& graph, Id id) const;
  void fill(const Graph& graph, Id last);
  static constexpr uint8_t kLeaf = 1, kEarlier = 2, kEnded = 4, kLeads = 8, kLeadsEarlier = 16;
  std::vector<uint8_t> flags_;
  bool has_leaves_ = false;  // since clear_leaves(); without one nothing is tracked or filled
  Id filled_ = 0;            // kLeads and kLeadsEarlier below this id are complete
};

}  // namespace plugrad::engine
