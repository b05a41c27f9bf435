// Loop variables: the arg of a Range node.
#pragma once

#include "ir/graph.h"

namespace plugrad {

/// How a loop is executed. The letter is the key of its colour in kernel names.
enum class AxisKind : uint8_t {
  Loop,    ///< an output axis, undecided or a serial loop
  Reduce,  ///< a serial loop that a Reduce closes
  Global,  ///< group id: a parallel axis; on a CPU the thread axis
  Local,   ///< work-item id inside a group
  Group,   ///< reduce axis shared by the work-items of a group
  Upcast,  ///< an output axis, expanded to values and vector lanes
  Unroll,  ///< a reduce axis, expanded
  Vector,  ///< an output or reduce axis as vector lanes
  Warp,    ///< work-items that share a tensor-core tile, along axis 0 of a group
  Block,   ///< a serial loop over parts of a reduction outside the output loops: partial sums wait
           ///< in memory between parts
};

/// Packs axis number (unique in the kernel; smaller is further out) and kind into Range's arg.
constexpr uint64_t range_arg(uint32_t axis, AxisKind kind) {
  return static_cast<uint64_t>(axis) << 8 | static_cast<uint64_t>(kind);
}
inline uint32_t range_axis(const Node& n) {
  return static_cast<uint32_t>(n.arg >> 8);
}
inline AxisKind range_kind(const Node& n) {
  return static_cast<AxisKind>(n.arg & 0xff);
}

inline Id make_range(Graph& g, int64_t size, uint32_t axis, AxisKind kind) {
  return g.add(Op::Range, DType::Index, {g.index(size)}, range_arg(axis, kind));
}
/// Number of iterations, or an upper bound if the range has bounds; the size source is a constant.
inline int64_t range_size(const Graph& g, Id range) {
  return const_int(g, g[range].src[0]);
}

/// Range(size, begin, end) iterates from begin to below end. Both are computed from constants,
/// ranges with smaller axis numbers or of enclosing loops, and scalar parameters; 0 <= begin, end
/// <= size, and begin >= end means no iterations. Bounds do not affect index analysis, whose
/// results hold for every value below size.
inline bool is_bounded(const Node& range) {
  return range.src_count == 3;
}
inline Id bounded_range(Graph& g, Id range, Id begin, Id end) {
  const Node& n = g[range];
  return g.add(Op::Range, n.dtype, {n.src[0], begin, end}, n.arg);
}
/// The same values under another axis number and kind.
inline Id renamed_range(Graph& g, Id range, uint32_t axis, AxisKind kind) {
  return g.add(Op::Range, g[range].dtype, g.sources(range), range_arg(axis, kind));
}

}  // namespace plugrad
