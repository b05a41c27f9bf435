// The properties of a tensor that a recording depends on: a replay is right only for equal ones.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/session.h"

namespace plugrad::jit_detail {

/// Appends dtype, device, shape and, on a mesh, the spec of a tensor. The caller holds the session's
/// lock.
void add_facts(std::vector<uint64_t>& words, engine::Session& session,
               const engine::TensorState& state);

}  // namespace plugrad::jit_detail
