// The properties of a tensor that a recording depends on: a replay is right only for equal ones.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/session.h"

namespace plugrad::jit_detail {

/// Appends dtype, device, shape, the bounds of a bound Variable and, on a mesh, the spec of a tensor. The caller holds the session's
/// lock.
void add_facts(std::vector<uint64_t>& words, engine::Session& session,
               const engine::TensorState& state);

/// Whether the state is a number, which takes its dtype or device from the other operands and is part of
/// the graph. With a single device, a strong constant is data.
bool is_number(engine::Session& session, const engine::TensorState& state);

/// The elements of a state that is a constant, on the host, for the device where its tensor would be
/// computed; null for other states.
std::shared_ptr<engine::Value> value_of_constant(engine::Session& session,
                                                 const engine::TensorState& state);

}  // namespace plugrad::jit_detail
