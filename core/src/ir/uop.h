// UOp: a node with its graph, for building graphs by hand and for tests.
#pragma once

#include <concepts>
#include <vector>

#include "ir/graph.h"
#include "ir/range.h"

namespace plugrad {

struct UOp {
  Graph* graph = nullptr;
  Id id = kNoId;

  operator Id() const {
    return id;
  }  // NOLINT(google-explicit-constructor): wherever an id is wanted
  const Node& node() const { return (*graph)[id]; }
  DType dtype() const { return node().dtype; }
  UOp with(Id other) const { return {graph, other}; }
  /// A constant of this node's dtype.
  UOp constant(int64_t value) const { return with(graph->constant(dtype(), value)); }
  UOp constant(double value) const { return with(graph->constant(dtype(), value)); }
  UOp cast(DType to) const { return with(graph->cast(id, to)); }
  UOp unary(Op op) const { return with(graph->unary(op, id)); }
  UOp binary(Op op, UOp other) const { return with(graph->binary(op, id, other.id)); }
};

inline UOp uop_range(Graph& g, int64_t size, uint32_t axis, AxisKind kind = AxisKind::Loop) {
  return {&g, make_range(g, size, axis, kind)};
}
inline UOp uop_constant(Graph& g, DType dtype, int64_t value) {
  return {&g, g.constant(dtype, value)};
}
inline UOp uop_constant(Graph& g, DType dtype, double value) {
  return {&g, g.constant(dtype, value)};
}

// Operators; / and % are FloorDiv and FloorMod on integers, / is FDiv on floats.
// clang-format off
inline UOp operator+(UOp a, UOp b) { return a.binary(Op::Add, b); }
inline UOp operator-(UOp a, UOp b) { return a.binary(Op::Sub, b); }
inline UOp operator*(UOp a, UOp b) { return a.binary(Op::Mul, b); }
inline UOp operator/(UOp a, UOp b) { return a.binary(is_float(a.dtype()) ? Op::FDiv : Op::FloorDiv, b); }
inline UOp operator%(UOp a, UOp b) { return a.binary(Op::FloorMod, b); }
inline UOp operator&(UOp a, UOp b) { return a.binary(Op::And, b); }
inline UOp operator|(UOp a, UOp b) { return a.binary(Op::Or, b); }
inline UOp operator^(UOp a, UOp b) { return a.binary(Op::Xor, b); }
inline UOp operator-(UOp a) { return a.unary(Op::Neg); }
template <std::integral T> UOp operator+(UOp a, T b) { return a + a.constant(int64_t{b}); }
template <std::integral T> UOp operator-(UOp a, T b) { return a - a.constant(int64_t{b}); }
template <std::integral T> UOp operator*(UOp a, T b) { return a * a.constant(int64_t{b}); }
template <std::integral T> UOp operator/(UOp a, T b) { return a / a.constant(int64_t{b}); }
template <std::integral T> UOp operator%(UOp a, T b) { return a % a.constant(int64_t{b}); }
inline UOp less(UOp a, UOp b) { return a.binary(Op::CmpLt, b); }
inline UOp equal(UOp a, UOp b) { return a.binary(Op::CmpEq, b); }
inline UOp not_equal(UOp a, UOp b) { return a.binary(Op::CmpNe, b); }
inline UOp max(UOp a, UOp b) { return a.binary(Op::Max, b); }
inline UOp where(UOp condition, UOp yes, UOp no) { return condition.with(condition.graph->where(condition, yes, no)); }
inline UOp less(UOp a, int64_t b) { return less(a, a.constant(b)); }
inline UOp equal(UOp a, int64_t b) { return equal(a, a.constant(b)); }
// clang-format on

/// A Reduce that closes ranges.
inline UOp reduce(Op op, UOp value, std::initializer_list<Id> ranges) {
  std::vector<Id> sources{value.id};
  sources.insert(sources.end(), ranges.begin(), ranges.end());
  return value.with(value.graph->add(Op::Reduce, value.dtype(), sources,
                                     value.graph->list({static_cast<int64_t>(op)})));
}

}  // namespace plugrad
