// The parameters of a kernel IR block, as launches need them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace plugrad::tuning {

struct IrParams {
  uint32_t buffer_count = 0;
  std::vector<uint64_t> greatest_scalars;  // the most of each scalar, in order
};

/// Of a block that the core wrote or has checked.
IrParams params_in(std::span<const std::byte> ir);

}  // namespace plugrad::tuning
