// Hashes the structure of a graph to 128 bits, independent of ids.
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

/// Hashes everything reachable from `roots`, in order of the roots; sources of commutative ops in
/// either order, lists by content. Keeps its memory between calls, and its results as long as the
/// graph is the same.
class StructuralHash {
 public:
  explicit StructuralHash(const Graph& graph) : graph_(graph) {}

  /// Replaces op, arg and sources of `node` by `number`: for buffers, whose own numbers do not
  /// affect what a graph computes. Call before hashing any node that contains it.
  void name(Id node, uint64_t number);

  NodeHash operator()(std::span<const Id> roots);
  NodeHash operator()(Id root) { return (*this)(std::span<const Id>(&root, 1)); }
  /// Hash of a node that an earlier call reached.
  const NodeHash& of(Id node) const { return by_id_[node]; }

 private:
  NodeHash compute(Id id) const;
  const Graph& graph_;
  Reachable reachable_;
  std::vector<NodeHash> by_id_;
  std::vector<bool> known_;
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
