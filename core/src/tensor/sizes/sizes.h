// Checked arithmetic of sizes that come from a user's shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/internal.h"
#include "plugrad/shape.h"

namespace plugrad::tensor {

constexpr std::size_t kMostAxes = 64;  // as NumPy 2 has

/// The number of elements. Errors: User for a negative size, for more than 2^60 elements and for
/// more than kMostAxes axes.
PLUGRAD_INTERNAL int64_t checked_count(std::string_view function, const Shape& shape);

/// Errors: User if the elements need more memory than the host has.
PLUGRAD_INTERNAL void require_host_memory(std::string_view function, const Shape& shape,
                                          uint64_t element_bytes);

}  // namespace plugrad::tensor
