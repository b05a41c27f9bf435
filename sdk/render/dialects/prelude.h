// Emits the types and helper functions that a kernel uses, in front of it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "render/dialects/dialect.h"

namespace plugrad::render {

// An element type and a number of lanes.
struct Type {
  uint32_t dtype;
  uint32_t lanes;
};

class Prelude {
 public:
  explicit Prelude(const Dialect& dialect) : dialect_(dialect) {}

  // Name of the type; requests its definition.
  std::string type(Type type);
  // The same type with an element's alignment.
  std::string unaligned(Type type);
  // Block type for access to buffers of the dtype; requests its definition.
  std::string pointer(uint32_t dtype);
  // Reinterprets a value as the unsigned integer of its size, and back.
  std::string to_bits(uint32_t dtype, const std::string& text);
  std::string from_bits(uint32_t dtype, const std::string& text);
  // A constant of `type`, lanes 1.
  std::string literal(uint32_t dtype, uint64_t bits);
  // True if values of the dtype are stored as unsigned integers.
  bool is_kept_as_bits(uint32_t dtype) const;
  // Name of the helper for arguments of `from` and a result of `to`; requests its definition.
  // `mask_bits` is the width of its mask arguments.
  std::string helper(const Helper& helper, Type from, Type to, Space space = Space::Private);

  // All requested definitions, in an order that depends only on the requests.
  std::string text() const;

 private:
  std::string plain_literal(uint32_t dtype, uint64_t bits);
  std::string float_by_bits(uint32_t dtype, uint64_t bits);
  std::string size_check(const std::string& name, uint32_t bytes, const char* advice) const;
  std::string scalar_definition(uint32_t dtype) const;
  std::string vector_definition(uint32_t dtype, uint32_t lanes, uint8_t used) const;
  const SpaceRow* space_of(const Helper& helper, Space space) const;
  std::string lane_by_lane(const Helper& helper, const std::string& name, Type from, Type to);
  std::string helper_text(const Helper& helper, Type from, Type to, Space space);

  const Dialect& dialect_;
  std::array<std::array<uint8_t, 7>, PGR_DTYPE_COUNT>
      used_{};  // bit set: 1 plain, 2 unaligned, 4 pointed to; indexed by log2 lanes
  std::vector<std::string> helper_names_;
  std::string helper_texts_;
};

// An integer literal without suffix, for contexts that fix its type.
std::string without_suffix(std::string literal);

// Size of an element of the dtype, in bits.
uint32_t bits_of(uint32_t dtype);
// The unsigned integer dtype of the same size.
uint32_t unsigned_dtype(uint32_t dtype);
// `lane` (below 16) as one hexadecimal digit.
std::string lane_digit(uint32_t lane);
// The dtype of an element in memory: a bool is stored as a byte, 0 or nonzero.
uint32_t memory_dtype(uint32_t dtype);
// The signed integer dtype of `bits`: the result of a vector comparison.
uint32_t mask_dtype(uint32_t bits);

}  // namespace plugrad::render
