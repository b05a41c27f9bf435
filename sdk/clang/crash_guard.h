// Runs code that may end in an internal failure of LLVM (a fatal error, a crash) and comes back.
#pragma once

#include <functional>

namespace plugrad::clang_component {

// False when `body` did not come to its end. Memory that it held is then lost, the process goes on.
bool run_guarded(const std::function<void()>& body);

}  // namespace plugrad::clang_component
