// Compares kernel IR that takes numbers at launch with IR that has them as constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plugrad::codegen {

/// Whether both compute the same bits, once `taking`'s scalar parameters are the constants
/// `numbers` (their bits as at launch): neither rounds, or both store the same expressions of the
/// same elements, in the same loops and in the same order. Integers are compared by their values in
/// some iterations, drawn at random. `taking` must have a scalar parameter for each number, and use
/// it. The blocks must come from generate().
bool is_same_program(std::span<const std::byte> with_constants, std::span<const std::byte> taking,
                     std::span<const uint64_t> numbers);

}  // namespace plugrad::codegen
