// The arena of nodes: interned, immutable, named by 32-bit ids whose order is topological.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "ir/op.h"
#include "ir/span_arena.h"
#include "plugrad/dtype.h"

namespace plugrad {

using Id = uint32_t;
using ListId = uint32_t;
inline constexpr Id kNoId = UINT32_MAX;

/// One micro-operation. 32 bytes; never changes after Graph::add.
struct Node {
  Op op;
  DType dtype;
  uint16_t src_count;
  Id src[3];  // inline sources; with src_count > 3, src[0] is the place in the graph's long sources
  uint64_t src_ops;  // one bit per source op: a rule is rejected with one AND
  uint64_t arg;      // by op (ArgKind): a number, a constant's bits, a ListId
};
static_assert(sizeof(Node) == 32);

/// Nodes, sources and lists live in blocks, so references and spans stay valid while the graph
/// grows. One thread at a time.
class Graph {
 public:
  Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  /// The node with these parts, made when there is none yet. Sources of a commutative op are put in
  /// order: constants right, otherwise ascending ids. Does not check shapes or dtypes: the verifier
  /// does.
  Id add(Op op, DType dtype, std::span<const Id> sources, uint64_t arg = 0);
  Id add(Op op, DType dtype, std::initializer_list<Id> sources, uint64_t arg = 0) {
    return add(op, dtype, std::span<const Id>(sources.begin(), sources.size()), arg);
  }

  /// Interned list of numbers: shapes, axes, …. Equal lists have equal ids.
  ListId list(std::span<const int64_t> values);
  ListId list(std::initializer_list<int64_t> values) {
    return list(std::span<const int64_t>(values.begin(), values.size()));
  }
  std::span<const int64_t> list(ListId id) const;

  const Node& operator[](Id id) const { return blocks_[id >> kBlockBits][id & kBlockMask]; }
  std::span<const Id> sources(Id id) const { return sources(operator[](id)); }
  std::span<const Id> sources(const Node& node) const {
    return node.src_count <= 3 ? std::span<const Id>(node.src, node.src_count)
                               : std::span<const Id>(long_src_.at(node.src[0]), node.src_count);
  }
  /// The list of a node whose arg is one.
  std::span<const int64_t> arg_list(Id id) const {
    return list(static_cast<ListId>(operator[](id).arg));
  }

  uint32_t size() const { return size_; }

  /// Gives back the room for more nodes: for a graph that is complete and kept. References and
  /// spans into it are no longer valid.
  void trim();
  /// Memory that it takes.
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

  /// The same node of another dtype, sources or arg.
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
  uint32_t room_ = 0;  // nodes that the blocks have memory for
  struct Lists;
  std::unique_ptr<Lists> lists_;
};

// Constants hold the bits of the value as the widest of its kind: int64_t (sign-extended; U64 as
// its bits; Bool 0 or 1) for integers, double for floats, so that -0, infinities and NaN keep their
// identity.
uint64_t bits_of(int64_t value, DType dtype);
uint64_t bits_of(double value, DType dtype);
inline bool is_const(const Graph& g, Id id) {
  return g[id].op == Op::Const;
}
inline int64_t const_int(const Graph& g, Id id) {
  return static_cast<int64_t>(g[id].arg);
}
double const_float(const Graph& g, Id id);  ///< any dtype, as a double

}  // namespace plugrad
