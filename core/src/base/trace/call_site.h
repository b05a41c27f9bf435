// Finds the line of the user's program that called a tensor function.
#pragma once

#include <cstdint>
#include <string_view>

namespace plugrad::trace {

/// The id of the operation "call of tensor function `function` from here": the innermost
/// SourceScope, else the callers on the stack. Defined in the trace at its first call; equal calls
/// from one place share it.
std::uint32_t operation(std::string_view function);

/// The operation that computes the derivative of `forward`, at the same place.
std::uint32_t derivative_of(std::uint32_t forward);

}  // namespace plugrad::trace
