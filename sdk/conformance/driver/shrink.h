// Reduces the kernel of a failure.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace plugrad::conformance {

// The smallest block found before the deadline for which `fails` returns true. Candidates must
// decode and run in the interpreter on buffers of zeros.
std::vector<std::byte> shrink_kernel(
    std::vector<std::byte> kernel_ir,
    const std::function<bool(std::span<const std::byte> kernel_ir)>& fails,
    std::chrono::steady_clock::time_point deadline);

}  // namespace plugrad::conformance
