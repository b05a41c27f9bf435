// Tests the claimed float ops on the device against exact arithmetic, and withdraws the wrong ones.
#pragma once

#include <cstdint>

struct pgr_device;

namespace plugrad::vulkan {

struct BrokenClaim {
  uint32_t op, dtypes;  // dtypes: a mask
};

// Withdraws every claim of an op and a float dtype with a wrong result. Results are cached per
// device UUID for the life of the process, never on disk: those of a software driver depend on the
// processor and on environment variables, while its name, version and UUIDs do not.
void withdraw_broken_claims(pgr_device& device);

}  // namespace plugrad::vulkan
