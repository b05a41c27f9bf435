// The legal changes to a kernel's ranges. Each checks that it is legal and is recorded in
// kernel.applied.
#pragma once

#include <optional>

#include "codegen/kernel.h"
#include "plugrad/error.h"

namespace plugrad::codegen {

/// Applies one change; Error(User) naming the change and the axis where it is not legal.
void apply(Kernel& kernel, const ScheduleStep& change);

/// Applies a Local or Group change unless the group would be larger than the device allows.
void apply_if_it_fits(Kernel& kernel, const ScheduleStep& change);

/// The axis becomes group ids; where the device launches fewer groups, its outer part does and the
/// inner stays a loop. False, and the kernel as it was, where no part of it fits.
bool apply_thread(Kernel& kernel, size_t axis);

/// What `change` returns; nothing, and the kernel as it was, where a change of it is not legal.
template <class Change>
std::optional<size_t> attempt(Kernel& kernel, const Change& change) {
  Kernel trial = copy_of(kernel);
  try {
    const size_t result = change(trial);
    kernel = std::move(trial);
    return result;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::User) throw;
    return std::nullopt;
  }
}

}  // namespace plugrad::codegen
