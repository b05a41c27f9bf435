// A lane is 64 bits, as in a CONST's arg. Number<D> converts between lanes and C++ values of dtype
// D; storing a float rounds it once to its format.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "plugrad/plugin_api/kernel_ir.h"
#include "plugrad/sdk/float_bits.h"

namespace plugrad::sdk {

template <typename T>
struct IntNumber {
  using Value = T;
  static T get(uint64_t bits) { return static_cast<T>(bits); }
  // Signed values are sign-extended, as in a CONST.
  static uint64_t put(T value) { return static_cast<uint64_t>(static_cast<int64_t>(value)); }
};
template <>
inline uint64_t IntNumber<uint64_t>::put(uint64_t value) {
  return value;
}

struct BoolNumber {
  using Value = bool;
  static bool get(uint64_t bits) { return bits != 0; }
  static uint64_t put(bool value) { return value; }
};

// 8- and 16-bit floats are computed in double, which has more than twice their bits plus two, so
// that double rounding is correct for + - * / and sqrt (Figueroa 1995).
template <uint32_t D>
struct SmallFloat {
  using Value = double;
  static double get(uint64_t bits) { return decode_float(D, bits); }
  static uint64_t put(double value) { return encode_float(D, value); }
};

struct Float32 {
  using Value = float;
  static float get(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
  static uint64_t put(float value) { return std::bit_cast<uint32_t>(value); }
};

struct Float64 {
  using Value = double;
  static double get(uint64_t bits) { return std::bit_cast<double>(bits); }
  static uint64_t put(double value) { return std::bit_cast<uint64_t>(value); }
};

template <uint32_t D>
struct NumberOf : SmallFloat<D> {};
template <>
struct NumberOf<PGR_DTYPE_BOOL> : BoolNumber {};
template <>
struct NumberOf<PGR_DTYPE_I8> : IntNumber<int8_t> {};
template <>
struct NumberOf<PGR_DTYPE_U8> : IntNumber<uint8_t> {};
template <>
struct NumberOf<PGR_DTYPE_I16> : IntNumber<int16_t> {};
template <>
struct NumberOf<PGR_DTYPE_U16> : IntNumber<uint16_t> {};
template <>
struct NumberOf<PGR_DTYPE_I32> : IntNumber<int32_t> {};
template <>
struct NumberOf<PGR_DTYPE_U32> : IntNumber<uint32_t> {};
template <>
struct NumberOf<PGR_DTYPE_I64> : IntNumber<int64_t> {};
template <>
struct NumberOf<PGR_DTYPE_U64> : IntNumber<uint64_t> {};
template <>
struct NumberOf<PGR_DTYPE_F32> : Float32 {};
template <>
struct NumberOf<PGR_DTYPE_F64> : Float64 {};

template <uint32_t D>
constexpr bool kIsBool = D == PGR_DTYPE_BOOL;
template <uint32_t D>
constexpr bool kIsInt = D >= PGR_DTYPE_I8 && D <= PGR_DTYPE_U64;
template <uint32_t D>
constexpr bool kIsFloat = D >= PGR_DTYPE_F16;
// Floats with arithmetic; the 8-bit ones are only moved and cast.
template <uint32_t D>
constexpr bool kIsMathFloat = kIsFloat<D> && D <= PGR_DTYPE_F64;

}  // namespace plugrad::sdk
