// Orders the reads of a kernel so that kernels with the same computation can be compared.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace plugrad::schedule {

/// An index as a sum of an expression and a constant.
struct SplitIndex {
  Id base;  // kNoId: the index is constant
  int64_t offset;
};
SplitIndex split_index(const Graph& g, Id index);

/// The loads of a kernel and its read-only parameters, in an order that depends neither on offsets
/// nor on parameter numbers, and a hash of everything else. Kernels with equal hashes may still
/// differ.
struct ReadOrder {
  explicit ReadOrder(const KernelAst& ast);
  uint64_t hash;
  std::vector<Id> loads, params;
};

}  // namespace plugrad::schedule
