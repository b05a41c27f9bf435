// Allowed heap growth of a repeated action.
#pragma once

#include <cstdint>

namespace plugrad::conformance {

// Bytes per round: small, unless the plugin uses a driver, whose allocations are not the plugin's.
// A leaked handle is larger.
uint64_t heap_slack_a_round();

}  // namespace plugrad::conformance
