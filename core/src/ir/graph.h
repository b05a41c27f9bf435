// The arena of nodes: interned, immutable, named by 32-bit ids in topological order.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "base/internal.h"
#include "ir/op.h"
#include "ir/span_arena.h"
#include "plugrad/dtype.h"

namespace plugrad {

using Id = uint32_t;
using ListId = uint32_t;
inline constexpr Id kNoId = UINT32_MAX;

/// Arg of the Detach that a tensor denotes after its backward().
inline constexpr uint64_t kDifferentiated = 1;

/// One micro-operation. 32 bytes; never changes after Graph::add.
struct Node {
  Op op;
  DType dtype;
  uint16_t src_count;
  Id src[3];         // inline sources; with src_count > 3, src[0] is an index into long_src_
  uint64_t src_ops;  // a bit for each source op: one AND rejects a rule
  uint64_t arg;      // meaning by ArgKind: a number, a constant's bits, a ListId
};
static_assert(sizeof(Node) == 32);

/// Stores nodes, sources and lists in blocks, so references and spans stay valid while the graph
/// grows. Not thread-safe.
class Graph {
 public:
  Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  /// The node with these fields, created on first request. Sources of a commutative op are sorted:
  /// constants last, others by ascending id. Does not check shapes or dtypes, unlike the verifier.
  PLUGRAD_INTERNAL Id add(Op op, DType dtype, std::span<const Id> sources, uint64_t arg = 0);
  Id add(Op op, DType dtype, std::initializer_list<Id> sources, uint64_t arg = 0) {
    return add(op, dtype, std::span<const Id>(sources.begin(), sources.size()), arg);
  }

  /// Interned list of numbers, e.g. shapes and axes. Equal lists have equal ids.
  PLUGRAD_INTERNAL ListId list(std::span<const int64_t> values);
  ListId list(std::initializer_list<int64_t> values) {
    return list(std::span<const int64_t>(values.begin(), values.size()));
  }
  PLUGRAD_INTERNAL std::span<const int64_t> list(ListId id) const;

  const Node& operator[](Id id) const { return blocks_[id >> kBlockBits][id & kBlockMask]; }
  std::span<const Id> sources(Id id) const { return sources(operator[](id)); }
  std::span<const Id> sources(const Node& node) const {
    return node.src_count <= 3 ? std::span<const Id>(node.src, node.src_count)
                               : std::span<const Id>(long_src_.at(node.src[0]), node.src_count);
  }
  /// The list of a node whose arg is a list.
  std::span<const int64_t> arg_list(Id id) const {
    return list(static_cast<ListId>(operator[](id).arg));
  }

  uint32_t size() const { return size_; }

  /// Frees unused capacity: for a complete graph that is kept. Invalidates references and spans.
  void trim();
  /// Memory that the graph occupies.
  uint64_t size_bytes() const;

  // Constants. The value is rounded to what the dtype can hold (integers wrap).
  Id constant(DType dtype, int64_t value);
  Id constant(DType dtype, double value);
  Id index(int64_t value) { return constant(DType::Index, value); }

  // Short forms; the result dtype follows from the sources (Bool for comparisons).
  Id unary(Op op, Id a) { return add(op, operator[](a).dtype, {a}); }
  Id binary(Op op, Id a, Id b);
  Id where(Id condition, Id yes, Id no) {
    return add(Op::Where, operator[](yes).dtype, {condition, yes, no});
  }
  Id cast(Id a, DType dtype) {
    return operator[](a).dtype == dtype ? a : add(Op::Cast, dtype, {a});
  }

  /// The same node with other sources.
  Id with_sources(Id id, std::span<const Id> sources) {
    const Node& n = operator[](id);
    return add(n.op, n.dtype, sources, n.arg);
  }

 private:
  static constexpr uint32_t kBlockBits = 12, kBlockMask = (1u << kBlockBits) - 1;
  uint32_t* find_slot(uint32_t hash, Op op, DType dtype, std::span<const Id> sources, uint64_t arg);
  void grow_table();
  void resize_last_block(uint32_t room);
  uint32_t* free_slot(uint32_t hash, std::span<const Id> sources);
  bool in_order(Id left, Id right) const;

  std::vector<std::unique_ptr<Node[]>> blocks_;
  SpanArena<Id> long_src_;
  std::vector<uint32_t> table_;   // open addressing; id + 1, 0 is empty
  std::vector<uint32_t> hashes_;  // by id
  uint32_t size_ = 0;
  uint32_t room_ = 0;  // capacity of the blocks, in nodes
  struct Lists;
  std::unique_ptr<Lists> lists_;
};

// Constants hold the bits of the value in the widest type of their kind: int64_t (sign-extended;
// U64 as its bits; Bool 0 or 1) for integers, double for floats, which keeps -0, infinities and NaN
// apart.
uint64_t bits_of(int64_t value, DType dtype);
uint64_t bits_of(double value, DType dtype);
/// A constant's bits as memory, kernels and launches have them: integers sign-extended, floats zero-extended.
uint64_t storage_bits(uint64_t constant, DType dtype);
/// The inverse.
uint64_t constant_bits(uint64_t stored, DType dtype);
inline bool is_const(const Graph& g, Id id) {
  return g[id].op == Op::Const;
}
/// Whether the node is the same number in every element: a constant, or one given at launch.
inline bool is_number(const Graph& g, Id id) {
  return g[id].op == Op::Const || g[id].op == Op::Scalar;
}
inline int64_t const_int(const Graph& g, Id id) {
  return static_cast<int64_t>(g[id].arg);
}
PLUGRAD_INTERNAL double const_float(const Graph& g, Id id);  ///< any dtype, as a double

}  // namespace plugrad
