// Facts derived from nodes, stored in vectors by id and filled on demand by one forward loop.
#pragma once

#include <algorithm>

#include "base/internal.h"
#include "ir/graph.h"

namespace plugrad {

/// The shape of every node of a tensor graph. Ids are topological, so a new node's shape depends
/// only on earlier entries. Constants have shape (). Elementwise ops have the shape of their
/// sources: all equal, except sources of shape (), which are broadcast.
class Shapes {
 public:
  explicit Shapes(Graph& graph) : graph_(graph) {}
  PLUGRAD_INTERNAL ListId id(Id node);
  std::span<const int64_t> operator[](Id node) { return graph_.list(id(node)); }
  void clear() { by_id_.clear(); }  ///< the graph was replaced

 private:
  ListId compute(Id node);
  Graph& graph_;
  std::vector<ListId> by_id_;
};

/// Device number of every node: that of a Buffer or Copy, otherwise that of its sources; 0: none.
class Devices {
 public:
  explicit Devices(const Graph& graph) : graph_(graph) {}
  PLUGRAD_INTERNAL uint32_t operator[](Id node);
  void clear() { by_id_.clear(); }  ///< the graph was replaced

 private:
  const Graph& graph_;
  std::vector<uint32_t> by_id_;
};

/// Whether an integer dtype holds the value.
bool holds(DType dtype, int64_t value);
/// strong(dtype) of the node, but i64 for an integer literal that i32 does not hold.
DType strong_dtype(const Graph& g, Id id);

/// The node below the views of a float that two kernels might round differently, each computing it
/// for itself; kNoId if there is none. A Contiguous in its place makes all readers see equal bits.
PLUGRAD_INTERNAL Id base_that_may_differ(const Graph& graph, Id id);
/// `root` with `to` in the place of `from`, which is below it.
PLUGRAD_INTERNAL Id replace_node(Graph& graph, Id root, Id from, Id to);

/// Buffer nodes: list is number, device, shape….
inline uint64_t buffer_number(const Graph& g, Id id) {
  return static_cast<uint64_t>(g.arg_list(id)[0]);
}
inline uint32_t buffer_device(const Graph& g, Id id) {
  return static_cast<uint32_t>(g.arg_list(id)[1]);
}

/// Largest number of elements of a tensor.
inline constexpr int64_t kMostElements = int64_t{1} << 60;
/// Whether no size is negative, and the product of the others is at most kMostElements or one is 0.
bool is_possible_shape(std::span<const int64_t> shape);

/// The shape must be possible.
inline int64_t element_count(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

/// Calls visit(i, i_end, j, j_end) for each pair of smallest groups of adjacent axes of `to` and
/// `from` with equal products: a reshape mixes axes within a group only. All axes of shapes without
/// elements are one group.
template <class Visit>
void each_reshape_group(std::span<const int64_t> to, std::span<const int64_t> from, Visit visit) {
  if (std::ranges::count(to, 0) != 0) return visit(0, to.size(), 0, from.size());
  for (size_t i = 0, j = 0; i < to.size() || j < from.size();) {
    const size_t i0 = i, j0 = j;
    int64_t a = i < to.size() ? to[i++] : 1, b = j < from.size() ? from[j++] : 1;
    while (a != b) {
      if (a < b)
        a *= to[i++];
      else
        b *= from[j++];
    }
    visit(i0, i, j0, j);
  }
}

/// Nodes reachable from `roots`, ascending, so sources come first. Time and memory depend on what
/// is reached, not on the graph's size: the stack and the epoch marks are reused between calls.
class PLUGRAD_INTERNAL Reachable {
 public:
  const std::vector<Id>& from(const Graph& graph, std::span<const Id> roots);
  /// The same, without the sources of nodes for which stop(id) is true.
  template <class Stop>
  const std::vector<Id>& from(const Graph& graph, std::span<const Id> roots, Stop stop);

 private:
  bool mark(Id id);
  void begin(uint32_t size);
  void finish();
  std::vector<uint32_t> epoch_of_;
  uint32_t epoch_ = 0;
  std::vector<Id> found_, stack_;
};

template <class Stop>
const std::vector<Id>& Reachable::from(const Graph& graph, std::span<const Id> roots, Stop stop) {
  begin(graph.size());
  for (Id root : roots)
    if (mark(root)) stack_.push_back(root);
  while (!stack_.empty()) {
    const Id id = stack_.back();
    stack_.pop_back();
    found_.push_back(id);
    if (stop(id)) continue;
    for (Id s : graph.sources(id))
      if (mark(s)) stack_.push_back(s);
  }
  finish();
  return found_;
}

}  // namespace plugrad
