// Turns indices of a view into indices of its source: index arithmetic on the ranges of one kernel.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"

namespace plugrad::schedule {

/// Builds index expressions of dtype Index, folding constants.
class Indexing {
 public:
  explicit Indexing(Graph& graph) : g_(graph) {}

  Id add(Id a, Id b);
  Id add(Id a, int64_t b) { return add(a, g_.index(b)); }
  Id mul(Id a, int64_t factor);
  Id quotient(Id a, int64_t divisor);
  Id remainder(Id a, int64_t divisor);
  /// low <= a < high for 0 <= a < size, without comparisons that always hold; kNoId: always true.
  Id within(Id a, int64_t low, int64_t high, int64_t size);
  Id both(Id a, Id b);  ///< conjunction; kNoId is true

  /// Row-major offset of `index` in `shape`.
  Id flatten(std::span<const Id> index, std::span<const int64_t> shape);
  /// The same with the axes in another order, outermost first. `block`: the last axis is cut into
  /// blocks of so many elements, which divide its size: the block number is outermost, the index in
  /// the block innermost. 0: not cut.
  Id flatten(std::span<const Id> index, std::span<const int64_t> shape,
             std::span<const int64_t> order, int64_t block = 0);
  /// The index into a source of shape `from` whose reshape to `to` is read at `index`.
  std::vector<Id> reshape(std::span<const Id> index, std::span<const int64_t> to,
                          std::span<const int64_t> from);

 private:
  std::vector<Id> split(Id flat, std::span<const int64_t> shape);
  Graph& g_;
};

}  // namespace plugrad::schedule
