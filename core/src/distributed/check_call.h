// Checks the arguments of a call.
#pragma once

#include <cstdint>
#include <vector>

#include "distributed/backend.h"

namespace plugrad::distributed {

/// Errors: User if the call is not well formed for this rank. Gives Send and Receive their group.
void check_call(Call& call, std::uint32_t rank, std::uint32_t size);

/// The first call of all ranks: it moves nothing.
void run_first(Backend& backend, std::vector<std::uint32_t> ranks);

}  // namespace plugrad::distributed
