// What a kernel IR block says of its launches, for those who have no use for its instructions.
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
  uint64_t total_bytes = 0;  // as the block says
  std::vector<pgr_ir_param> params;
  uint64_t group_count[3] = {1, 1, 1};
  uint32_t local_size[3] = {1, 1, 1};
};

/// Nothing where the bytes are no block. Of records the fields of 1.0 are read, which every minor
/// has.
std::optional<KernelFacts> read_kernel_facts(std::span<const std::byte> ir);

}  // namespace plugrad::runtime
