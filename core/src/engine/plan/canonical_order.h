// Labels the nodes of a graph by structure alone: nodes have equal labels if they compute the same
// function of equal inputs and are used in the same ways.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace plugrad::engine {

/// Nodes are added in topological order and named by their index. Passes are linear: one labels
/// what a node computes; two more run only when two nodes of equal label are compared, and label
/// how a node is used and both properties of all nodes below it. Different nodes may still compare
/// equal; their order is then not structural.
class StructuralOrder {
 public:
  void begin(size_t node_count);
  /// `own`: the node's description without its sources; its last `numbers` words decide only
  /// between nodes that are equal otherwise, so that a number that changes does not change the
  /// order. `sources` must stay valid until the last comparison.
  void add(std::span<const uint64_t> own, size_t numbers, std::span<const uint32_t> sources,
           bool is_commutative);
  void add_root(uint32_t node) { roots_.push_back(node); }
  bool comes_first(uint32_t a, uint32_t b);

 private:
  struct Sources {
    const uint32_t* first;
    uint32_t count;
    bool is_commutative;
  };
  static uint64_t combine(uint64_t own, const Sources& sources, std::span<const uint64_t> of);
  void label_all();
  void label_with_numbers();

  std::vector<Sources> sources_;
  std::vector<uint32_t> roots_;
  std::vector<uint64_t> own_, below_, use_;
  std::vector<std::pair<uint32_t, uint64_t>> numbers_;  // of nodes: a hash
  std::vector<uint64_t> label_, exact_;                 // empty until needed; exact_: with numbers
};

}  // namespace plugrad::engine
