// The largest piece of memory that this process asked for, so that a test sees what an announced
// size led to before any memory is short.
#pragma once

#include <cstddef>

namespace plugrad::test {

/// In bytes, since it was last called; by operator new, in any thread.
std::size_t take_largest_request();

}  // namespace plugrad::test
