// The largest allocation that this process requested, so that a test detects allocations of
// announced sizes before memory runs out.
#pragma once

#include <cstddef>

namespace plugrad::test {

/// In bytes, since it was last called; by operator new, in any thread.
std::size_t take_largest_request();

}  // namespace plugrad::test
