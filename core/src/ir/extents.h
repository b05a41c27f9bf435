// Dynamic axis sizes: a shape has the largest size of each axis, for which memory, strides and
// loops are made; an extent has the number of indices with elements, known when a kernel runs.
// Elements beyond it are arbitrary and must not affect others: reductions and padding call masked()
// first.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "ir/facts.h"

namespace plugrad {

/// The extent of one axis of a tensor.
struct Extent {
  enum class Kind : uint8_t {
    Whole,    ///< every index has an element
    Free,     ///< constants and positions: adopts the extent of the other operands
    Counted,  ///< `count` indices have one, from `least` up to the size
    // The extent cannot be expressed; the reason:
    Different,  ///< operands have different extents
    Merged,     ///< a reshape split the axis or merged it with others
    Cut,        ///< a slice may reach beyond the extent
    Reversed,   ///< the elements do not start at index 0
    Opaque,     ///< a user-written kernel reads it
  };
  Kind kind = Kind::Whole;
  Id count = kNoId;  // i32 of shape ()
  int64_t least = 0;
  bool is_counted() const { return kind == Kind::Counted; }
  bool is_undecided() const { return kind > Kind::Counted; }
  bool operator==(const Extent&) const = default;
};

/// Computes the extents of every node of a tensor graph; adds nodes for derived counts.
class Extents {
 public:
  Extents(Graph& graph, Shapes& shapes) : graph_(graph), shapes_(shapes) {}
  const std::vector<Extent>& operator[](Id node);
  /// Whether an axis of the node is Counted.
  bool is_counted(Id node);
  /// The graph was replaced.
  void clear() {
    by_id_.clear();
    lists_.clear();
  }

 private:
  using List = std::vector<Extent>;
  List compute(Id node);
  List elementwise(Id node);
  List reshaped(Id node);
  List resized(Id node);
  Extent rescaled(const Extent& e, int64_t size, int64_t to);
  Extent padded(const Extent& e, int64_t before, int64_t after);
  Extent shrunk(const Extent& e, int64_t size, int64_t begin, int64_t end);
  List copied(Id node);
  Id plus(Id count, int64_t number);
  uint32_t keep(Id node, List list);

  Graph& graph_;
  Shapes& shapes_;
  std::vector<uint32_t> by_id_;  // index into lists_
  std::deque<List> lists_;
};

/// A tensor graph with its shapes and extents.
struct BoundedGraph {
  Graph& graph;
  Shapes& shapes;
  Extents& extents;

  /// `x` with that extent along the axis, replacing any other.
  Id bound(Id x, int64_t axis, Id count, int64_t least);
  /// `x` with the Counted extents of `model`, which has the same shape.
  Id like(Id x, Id model);
  /// `x` with the identity of a reduction by `op` beyond the extents of `axes`.
  Id masked(Id x, std::span<const int64_t> axes, Op op);
  /// `x` with the constant `fill` beyond its Counted extent along the axis, which becomes Whole.
  Id whole(Id x, int64_t axis, Id fill);

 private:
  Id inside(Id x, int64_t axis);
};

}  // namespace plugrad
