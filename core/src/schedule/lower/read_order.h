// What a kernel reads, in an order by which kernels that compute alike can be compared.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace plugrad::schedule {

inline uint64_t mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

/// An index as the rest of it and the constant at its end.
struct SplitIndex {
  Id base;  // kNoId: nothing
  int64_t offset;
};
SplitIndex split_index(const Graph& g, Id index);

/// The loads of a kernel and the parameters that it reads alone, in an order that depends neither
/// on offsets nor on the parameters' numbers, and a hash of all else. Kernels with the same hash
/// may still differ.
struct ReadOrder {
  explicit ReadOrder(const KernelAst& ast);
  uint64_t hash;
  std::vector<Id> loads, params;
};

}  // namespace plugrad::schedule
