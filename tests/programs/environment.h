// Settings of a run, from the environment.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace plugrad::programs {

inline uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* given = std::getenv(variable);
  return given ? std::strtoull(given, nullptr, 10) : otherwise;
}

}  // namespace plugrad::programs
