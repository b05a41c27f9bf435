// What the tests of collectives share: every rank runs the same tests in the same order.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "distributed/backend.h"

namespace plugrad::distributed::test {

inline std::uint32_t self() {
  return backend()->rank();
}

inline std::uint32_t count_of_ranks() {
  return backend()->size();
}

inline std::vector<std::uint32_t> all_ranks() {
  std::vector<std::uint32_t> ranks(count_of_ranks());
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

template <class T>
const std::byte* bytes(const std::vector<T>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

template <class T>
std::byte* bytes(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

}  // namespace plugrad::distributed::test
