// The worker's end of the channel.
#pragma once

#include "conformance/worker/channel.h"

namespace plugrad::conformance {

// Answers requests for ever; the driver ends the process.
[[noreturn]] void serve(Channel& channel);

}  // namespace plugrad::conformance
