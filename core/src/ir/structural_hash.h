// What a graph computes, as 128 bits: the same for equal structures whatever their ids.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "ir/facts.h"

namespace plugrad {

struct NodeHash {
  uint64_t word[2] = {};
  friend bool operator==(const NodeHash&, const NodeHash&) = default;
  friend auto operator<=>(const NodeHash&, const NodeHash&) = default;
};

/// 32 hexadecimal digits.
std::string to_string(const NodeHash& hash);

/// Hashes what is reachable from `roots`, in the order of the roots; sources of commutative ops
/// count in either order, lists by content. Keeps its memory between calls, and for one graph its
/// results too.
class StructuralHash {
 public:
  explicit StructuralHash(const Graph& graph) : graph_(graph) {}

  /// From now on `node` counts as this number alone, its op, arg and sources do not: for buffers,
  /// whose own numbers are no part of what a graph computes. Only before the first hash of a node
  /// that contains it.
  void name(Id node, uint64_t number);

  /// From now on `node` counts with this arg instead of its own: for numbers that only tell nodes
  /// apart.
  void rename_arg(Id node, uint64_t arg) { args_.emplace_back(node, arg); }

  NodeHash operator()(std::span<const Id> roots);
  NodeHash operator()(Id root) { return (*this)(std::span<const Id>(&root, 1)); }
  /// Hash of one node that an earlier call reached.
  const NodeHash& of(Id node) const { return by_id_[node]; }

 private:
  NodeHash compute(Id id) const;
  const Graph& graph_;
  Reachable reachable_;
  std::vector<NodeHash> by_id_;
  std::vector<bool> known_;
  std::vector<std::pair<Id, uint64_t>> args_;
};

inline NodeHash structural_hash(const Graph& graph, std::span<const Id> roots) {
  return StructuralHash(graph)(roots);
}
inline NodeHash structural_hash(const Graph& graph, Id root) {
  return StructuralHash(graph)(root);
}

}  // namespace plugrad

template <>
struct std::hash<plugrad::NodeHash> {
  size_t operator()(const plugrad::NodeHash& h) const noexcept {
    return static_cast<size_t>(h.word[0]);
  }
};
