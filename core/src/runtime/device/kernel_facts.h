// Reads the launch parameters of a kernel IR block, without its instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugrad/plugin_api/kernel_ir.h"

namespace plugrad::runtime {

struct KernelFacts {
  std::string name;
  uint64_t total_bytes = 0;  // as stated in the block
  std::vector<pgr_ir_param> params;
  uint64_t group_count[3] = {1, 1, 1};
  uint32_t local_size[3] = {1, 1, 1};
};

/// Nothing if the bytes are no block. Reads the fields of version 1.0, which every minor has.
std::optional<KernelFacts> read_kernel_facts(std::span<const std::byte> ir);

}  // namespace plugrad::runtime
