// Axes of which only a first part counts: sizes that are known when a kernel runs. A shape holds
// the largest size of each axis, and memory, strides and loops are for that; an extent says how
// many places along the axis have elements. What lies behind them is whatever was computed there,
// and no element depends on it: reductions and padding take an axis through masked() first.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "ir/facts.h"

namespace plugrad {

/// One axis of a tensor's extents.
struct Extent {
  enum class Kind : uint8_t {
    Whole,    ///< every place has an element
    Free,     ///< numbers and positions: takes the extent of what it meets
    Counted,  ///< `count` places have one, between `least` and all
    // No extent can be said: the reason.
    Different,  ///< operands have different ones
    Merged,     ///< a reshape split the axis, or joined it with others
    Cut,        ///< a part was taken that may reach beyond it
    Reversed,   ///< the first place lies somewhere inside
    Opaque,     ///< a written kernel reads it
  };
  Kind kind = Kind::Whole;
  Id count = kNoId;  // i32 of shape ()
  int64_t least = 0;
  bool is_counted() const { return kind == Kind::Counted; }
  bool is_undecided() const { return kind > Kind::Counted; }
  bool operator==(const Extent&) const = default;
};

/// The extents of every node of a tensor graph; adds nodes for counts that follow from others.
class Extents {
 public:
  Extents(Graph& graph, Shapes& shapes) : graph_(graph), shapes_(shapes) {}
  const std::vector<Extent>& operator[](Id node);
  /// Whether an axis of the node is Counted.
  bool is_counted(Id node);

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
  std::vector<uint32_t> by_id_;  // place in lists_
  std::deque<List> lists_;
};

/// A tensor graph with what is derived of it.
struct BoundedGraph {
  Graph& graph;
  Shapes& shapes;
  Extents& extents;

  /// `x` with that extent along the axis, in place of another.
  Id bound(Id x, int64_t axis, Id count, int64_t least);
  /// `x` with the Counted extents of `model`, which has its shape.
  Id like(Id x, Id model);
  /// `x`, with what a reduction by `op` of nothing is behind the extents of `axes`.
  Id masked(Id x, std::span<const int64_t> axes, Op op);
  /// `x` with the constant `fill` behind its Counted extent along the axis, which is Whole then.
  Id whole(Id x, int64_t axis, Id fill);

 private:
  Id inside(Id x, int64_t axis);
};

}  // namespace plugrad
