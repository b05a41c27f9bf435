// Labels of a graph's nodes that follow from structure alone: equal labels are given to nodes that
// compute the same of equal inputs and that are used in the same ways.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plugrad::engine {

/// Nodes are added in topological order and named by the order of adding. Linear passes: what a
/// node computes; then, only when two nodes that compute the same are compared, what a node is used
/// for and both of all that lies below it. Nodes that differ may still compare equal: their order
/// is not structural.
class StructuralOrder {
 public:
  void begin(size_t node_count);
  /// `own`: all that describes the node beside its sources. `sources` stay where they are until the
  /// last comparison.
  void add(std::span<const uint64_t> own, std::span<const uint32_t> sources, bool is_commutative);
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

  std::vector<Sources> sources_;
  std::vector<uint32_t> roots_;
  std::vector<uint64_t> own_, below_, use_;
  std::vector<uint64_t> label_;  // empty until needed
};

}  // namespace plugrad::engine
