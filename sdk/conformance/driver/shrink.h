// Makes the kernel of a failure small.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace plugrad::conformance {

// The smallest block found until the deadline of which `fails` says that it still fails. Only
// blocks that decode and that the interpreter runs, on buffers of zeros, are asked about.
std::vector<std::byte> shrink_kernel(
    std::vector<std::byte> kernel_ir,
    const std::function<bool(std::span<const std::byte> kernel_ir)>& fails,
    std::chrono::steady_clock::time_point deadline);

}  // namespace plugrad::conformance
