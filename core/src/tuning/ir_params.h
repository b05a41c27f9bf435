// Extracts the parameters of a kernel IR block that a launch needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace plugrad::tuning {

struct IrParams {
  uint32_t buffer_count = 0;
  std::vector<uint64_t> greatest_scalars;  // upper bound of each scalar, in order
};

/// The block must come from the core or have been checked.
IrParams params_in(std::span<const std::byte> ir);

}  // namespace plugrad::tuning
