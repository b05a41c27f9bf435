// Operands to try ops on: the edges of each dtype, values spread over all exponents, pairs chosen
// so that roundings tie, cancel and overflow.
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

// Any bits: of floats every exponent is as likely as any other, of integers every length.
uint64_t any_value(uint32_t dtype, Random& random);

// Near one, so that sums and products of many stay finite: floats in ±[1/2, 2), small integers.
uint64_t tame_value(uint32_t dtype, Random& random);

// Operands by source: columns[s][i] is source s of case i.
struct Cases {
  std::vector<std::vector<uint64_t>> columns;
  size_t size() const { return columns.empty() ? 0 : columns[0].size(); }
  std::vector<uint64_t> at(size_t i) const;
  void add(std::initializer_list<uint64_t> sources);
};

// About `count` random cases behind all edges; every value for one source of at most 16 bits.
Cases make_cases(const Operation& operation, size_t count, Random& random);

}  // namespace plugrad::conformance
