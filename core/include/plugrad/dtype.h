// Dtypes of tensors and graph nodes, and their promotion.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "plugrad/export.h"

namespace plugrad {

/// The numbers of the dtypes up to F8E5M2 are those of the plugin ABI.
enum class DType : uint8_t {
  Void = 0,  ///< no value, e.g. of a store; no tensor has it
  Bool = 1,
  I8 = 2,
  U8 = 3,
  I16 = 4,
  U16 = 5,
  I32 = 6,
  U32 = 7,
  I64 = 8,
  U64 = 9,
  F16 = 10,
  BF16 = 11,  ///< bfloat16: the upper half of an f32
  F32 = 12,
  F64 = 13,
  F8E4M3 = 14,  ///< 4 bits of exponent, 3 of mantissa
  F8E5M2 = 15,
  // Exist only in graphs: no buffer has them, and no plugin sees them.
  Index = 64,  ///< index arithmetic and integer literals ("weak int"), of a width that holds them
  WeakFloat = 65,  ///< float literals: promotion gives them the dtype of the other operand
};

/// "f32", "i64", …: the short name, which dtype_from_name reads; "unknown" for other numbers.
PLUGRAD_API std::string_view name_of(DType dtype);
/// Bytes of one element; 0 for Void, Index and WeakFloat.
PLUGRAD_API uint32_t size_of(DType dtype);
/// The dtype of that name ("f32", "float32", "i64", "int", …); Void when there is none.
PLUGRAD_API DType dtype_from_name(std::string_view name);

PLUGRAD_API bool is_float(DType dtype);     ///< floats, WeakFloat included
PLUGRAD_API bool is_integer(DType dtype);   ///< integers, Index included; not Bool
PLUGRAD_API bool is_unsigned(DType dtype);  ///< U8 to U64 and Bool

/// The smallest dtype that both convert to, by the promotion lattice of JAX, with weak literals.
/// i64 with f16 is f16; u64 with i64 is WeakFloat (f32 once stored).
PLUGRAD_API DType promote(DType a, DType b);
/// The dtype in which a weak dtype is stored: I32 for Index, F32 for WeakFloat; others are
/// unchanged.
PLUGRAD_API DType strong(DType dtype);
/// The dtype of a sum, product or scan: i64 for bool and integers, u64 for unsigned integers.
PLUGRAD_API DType sum_dtype(DType dtype);

/// The dtype that holds values of the C++ type T.
template <class T>
  requires std::is_arithmetic_v<T>
constexpr DType dtype_of() {
  static_assert(!std::is_same_v<T, long double>, "no dtype holds long double; use double");
  if constexpr (std::is_same_v<T, bool>)
    return DType::Bool;
  else if constexpr (std::is_floating_point_v<T>)
    return sizeof(T) == 4 ? DType::F32 : DType::F64;
  else if constexpr (sizeof(T) == 1)
    return std::is_signed_v<T> ? DType::I8 : DType::U8;
  else if constexpr (sizeof(T) == 2)
    return std::is_signed_v<T> ? DType::I16 : DType::U16;
  else if constexpr (sizeof(T) == 4)
    return std::is_signed_v<T> ? DType::I32 : DType::U32;
  else
    return std::is_signed_v<T> ? DType::I64 : DType::U64;
}

}  // namespace plugrad
