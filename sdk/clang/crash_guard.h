// Runs code and recovers from internal failures of LLVM (fatal errors, crashes).
#pragma once

#include <functional>

namespace plugrad::clang_component {

// Returns false if `body` did not complete. Its memory is then leaked; the process continues.
bool run_guarded(const std::function<void()>& body);

}  // namespace plugrad::clang_component
