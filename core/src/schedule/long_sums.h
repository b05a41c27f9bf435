// A reduction of a sum of many terms as several kernels: the gradient of a weight that every step
// of an unrolled loop reads.
//   before   reduce(t0 + t1 + … + t99)
//   after    store(reduce(t0 + … + t31)), store(it + reduce(t32 + … + t63)), …
// The kernels in the middle are equal, and each compiles in the time of a few terms.
#pragma once

#include <vector>

#include "ir/facts.h"

namespace plugrad::schedule {

/// Terms of sums in a tensor graph.
class LongSums {
 public:
  /// Of matrix products in a kernel, whose register tiles LLVM compiles in 0.2 s.
  static constexpr size_t kMostTerms = 32;

  LongSums(const Graph& graph, std::span<const Id> roots);
  /// What `sum` adds, looking through additions that nothing else reads, of whose sources
  /// `has_shape` says that they are of the sum's shape.
  template <class HasShape>
  std::vector<Id> terms(Id sum, HasShape has_shape) const;

 private:
  bool is_inner(Id id) const { return graph_[id].op == Op::Add && uses_[id] == 1; }
  const Graph& graph_;
  std::vector<uint32_t> uses_;  // by id
};

template <class HasShape>
std::vector<Id> LongSums::terms(Id sum, HasShape has_shape) const {
  std::vector<Id> found, stack = {sum};
  while (!stack.empty()) {
    const Id id = stack.back();
    stack.pop_back();
    const auto sources = graph_.sources(id);
    if (is_inner(id) && has_shape(sources[0]) && has_shape(sources[1]))
      stack.insert(stack.end(), sources.begin(), sources.end());
    else
      found.push_back(id);
  }
  return found;
}

}  // namespace plugrad::schedule
