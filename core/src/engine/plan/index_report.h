// The report of a kernel that checks indices: i32 or i64 of shape (2), the number of the first
// element that is out of range, and its value.
#pragma once

#include <cstdint>

namespace plugrad::engine {

/// The number in a report if every element is in range.
inline constexpr int64_t kNoneOutside = -1;

}  // namespace plugrad::engine
