// Operands for testing ops: the edges of each dtype, values over all exponents, and pairs whose
// results tie, cancel or overflow.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "conformance/numbers/reference.h"

namespace plugrad::conformance {

using Random = std::mt19937_64;

// Zeros, ones, largest and smallest, infinities, NaNs of both signs, denormals, powers of two,
// integer extremes; bits as in memory.
std::vector<uint64_t> edge_values(uint32_t dtype);

// Every value of a dtype of at most 16 bits.
std::vector<uint64_t> all_values(uint32_t dtype);

// Random bits: all float exponents and all integer lengths are equally likely.
uint64_t any_value(uint32_t dtype, Random& random);

// Near one, so that long sums and products stay finite: floats in ±[1/2, 2), small integers.
uint64_t tame_value(uint32_t dtype, Random& random);

// Operands by source: columns[s][i] is source s of case i.
struct Cases {
  std::vector<std::vector<uint64_t>> columns;
  size_t size() const { return columns.empty() ? 0 : columns[0].size(); }
  std::vector<uint64_t> at(size_t i) const;
  void add(std::initializer_list<uint64_t> sources);
};

// All edges and about `count` random cases; every value for one source of at most 16 bits.
Cases make_cases(const Operation& operation, size_t count, Random& random);

}  // namespace plugrad::conformance
