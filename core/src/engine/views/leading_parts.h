// The first elements along the axes of a value, copied on its device to memory of another shape:
// without a kernel, which each shape would need one of its own of.
#pragma once

#include <optional>
#include <span>

#include "base/internal.h"
#include "engine/session.h"
#include "engine/value.h"

namespace plugrad::engine {

/// Copies the box of shape `part` at the start of both, row by row; false, and nothing is copied, if
/// these are more than `most_copies`.
bool copy_box(runtime::Buffer& to, std::span<const int64_t> to_shape, const runtime::Buffer& from,
              std::span<const int64_t> from_shape, std::span<const int64_t> part,
              uint64_t element_bytes, int64_t most_copies);
/// The node whose first elements along its axes the node shows.
Id leading_source(const Graph& graph, Id node);
/// Those elements at the start of memory of the shape `room`; null unless the source's value lies on
/// one device, this one unless it is 0, and where many copies were needed.
ValuePtr copied_part(Session& session, Id node, std::span<const int64_t> room, uint32_t device);
/// A node of that shape that begins with the state's elements along each axis, and has any behind
/// them: the source, if it has the shape, or a copy; nothing where there is none.
PLUGRAD_INTERNAL std::optional<Id> in_room(Session& session, TensorState& state,
                                           std::span<const int64_t> room);

}  // namespace plugrad::engine
