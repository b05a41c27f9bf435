// Compares kernel IR that takes numbers at launch with IR that has them as constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plugrad::codegen {

/// Whether both compute the same bits: the same loops, loads, stores and instructions in the same order,
/// on the same operands, once `taking`'s scalar parameters are the constants `numbers` (their bits as
/// at launch). `taking` must have a scalar parameter of the right dtype for each. The blocks must come from
/// generate().
bool is_same_program(std::span<const std::byte> with_constants, std::span<const std::byte> taking,
                     std::span<const uint64_t> numbers);

}  // namespace plugrad::codegen
