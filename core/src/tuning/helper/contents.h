// Generates the contents of a timed kernel's buffers and compares results.
#pragma once

#include <string>
#include <vector>

#include "tuning/helper/messages.h"

namespace plugrad::tuning {

/// Floats are multiples of 2^kContentQuantum.
inline constexpr double kLargestContent = 2;
inline constexpr int kContentQuantum = -3;

/// Deterministic for the same spec and slot in every process. Floats are eighths of magnitude 1/8
/// to 2: their products and sums are exact in any order, as far as the dtype holds them.
std::vector<std::byte> contents_of(const ParamSpec& spec, uint32_t slot);

struct Comparison {
  std::span<const std::byte> reference, candidate;
  std::span<const std::byte> untouched;  // if set: skip elements equal to these in the reference
  double tolerance = 0;
};

/// Empty if they agree: integers exactly, floats within the tolerance, NaN with NaN.
std::string difference(const ParamSpec& spec, const Comparison& compared);

}  // namespace plugrad::tuning
