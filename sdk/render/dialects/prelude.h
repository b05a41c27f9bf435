// What stands before the kernel: the types and helper functions that it uses, and no others.
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

  // The type's name; it will be defined.
  std::string type(Type type);
  // The same type for memory that is aligned only like an element.
  std::string unaligned(Type type);
  // The block through which buffers of the dtype are reached; it will be defined.
  std::string pointer(uint32_t dtype);
  // A value's bits as an unsigned integer of its size, and back.
  std::string to_bits(uint32_t dtype, const std::string& text);
  std::string from_bits(uint32_t dtype, const std::string& text);
  // A constant of `type`, lanes 1.
  std::string literal(uint32_t dtype, uint64_t bits);
  // Whether a value of the dtype is its bits, as an unsigned integer.
  bool is_kept_as_bits(uint32_t dtype) const;
  // Name of the helper for arguments of `from` and a result of `to`; it will be defined.
  // `mask_bits` is the width of its mask arguments.
  std::string helper(const Helper& helper, Type from, Type to, Space space = Space::Private);

  // Everything asked for, in an order that depends on nothing but the requests.
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
      used_{};  // 1 plain, 2 unaligned, 4 pointed to; by log2 lanes
  std::vector<std::string> helper_names_;
  std::string helper_texts_;
};

// An integer literal where its place gives it the type.
std::string without_suffix(std::string literal);

// Bits of an element of the dtype.
uint32_t bits_of(uint32_t dtype);
// The unsigned integer dtype of the same size.
uint32_t unsigned_dtype(uint32_t dtype);
// A number below 16 as one hexadecimal digit.
std::string lane_digit(uint32_t lane);
// The dtype of an element in memory: a bool is a byte there, 0 or not.
uint32_t memory_dtype(uint32_t dtype);
// The signed integer dtype of so many bits: what a comparison of vectors gives.
uint32_t mask_dtype(uint32_t bits);

}  // namespace plugrad::render
