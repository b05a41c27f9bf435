// Claims that some drivers compute wrongly: tested on the device, and withdrawn if wrong.
#pragma once

#include <cstdint>
#include <span>

struct pgr_device;

namespace plugrad::vulkan {

// An input and the required result of a claim. Values are in the low bits of a word.
struct Suspect {
  uint32_t op, dtype;      // the claim under test
  const char* expression;  // GLSL expression of x and y, as the dialect renders the op
  uint64_t x, y, expected;
};
std::span<const Suspect> suspects();

// Withdraws every claim with a wrong result. Results are cached per device UUID for the life of the
// process, never on disk: the results of a software driver depend on the processor and environment
// variables, while its name, version and UUIDs do not.
void withdraw_broken_claims(pgr_device& device);

}  // namespace plugrad::vulkan
