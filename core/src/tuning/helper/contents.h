// What the buffers of a measured kernel hold, and whether two results agree.
#pragma once

#include <string>
#include <vector>

#include "tuning/helper/messages.h"

namespace plugrad::tuning {

/// Floats are multiples of 2^kContentQuantum.
inline constexpr double kLargestContent = 2;
inline constexpr int kContentQuantum = -3;

/// The same for the same spec and slot in every process. Floats are eighths of at most 2 in
/// magnitude, none of them 0: products and sums of them are exact in every order, as far as the
/// dtype holds them.
std::vector<std::byte> contents_of(const ParamSpec& spec, uint32_t slot);

struct Comparison {
  std::span<const std::byte> reference, candidate;
  std::span<const std::byte>
      untouched;  // not empty: elements that the reference left so are not compared
  double tolerance = 0;
};

/// Empty where they agree: integers exactly, floats within the tolerance, NaN with NaN.
std::string difference(const ParamSpec& spec, const Comparison& compared);

}  // namespace plugrad::tuning
