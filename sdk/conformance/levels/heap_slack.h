// How much of the heap a repeated action may leave behind.
#pragma once

#include <cstdint>

namespace plugrad::conformance {

// Bytes a round: hardly any, unless a driver stands under the plugin, whose own books are not the
// plugin's. A handle that a plugin forgets is larger.
uint64_t heap_slack_a_round();

}  // namespace plugrad::conformance
