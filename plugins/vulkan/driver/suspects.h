// Claims that some driver computes wrong: tried on the device, and withdrawn where it does too.
#pragma once

#include <cstdint>
#include <span>

struct pgr_device;

namespace plugrad::vulkan {

// One value that a claim must give. Bits stand in the low bits of a word.
struct Suspect {
  uint32_t op, dtype;      // the claim
  const char* expression;  // GLSL of x and y, as the dialect writes the op
  uint64_t x, y, expected;
};
std::span<const Suspect> suspects();

// Withdraws from the device's capabilities every claim of which a suspect's result is wrong. The
// results are kept in the plugin by the device's UUID, as long as the process, and never on disk:
// what a driver in software computes depends on the processor and on variables of the environment,
// and its name, version and UUIDs are the same with each.
void withdraw_broken_claims(pgr_device& device);

}  // namespace plugrad::vulkan
