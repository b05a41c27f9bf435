// Conversions between pairs of words and the other dtypes.
#include <bit>
#include <cmath>

#include "codegen/lowering/int64_math.h"

namespace plugrad::codegen {
namespace {

bool is_small_float(DType dtype) {
  return is_float(dtype) && size_of(dtype) < 4;
}

}  // namespace

uint32_t Int64Math::real(double value, DType dtype) {
  const uint64_t bits = dtype == DType::F64 ? std::bit_cast<uint64_t>(value)
                                            : std::bit_cast<uint32_t>(static_cast<float>(value));
  return writer_.inst(PGR_OP_CONST, dtype, 1, {}, bits);
}

Pair Int64Math::from(uint32_t value, DType dtype, bool is_signed) {
  if (is_small_float(dtype)) return from_float(cast(value, DType::F32), DType::F32, is_signed);
  if (is_float(dtype)) return from_float(value, dtype, is_signed);
  const uint32_t low = dtype == DType::Bool ? number(value) : cast(value, DType::U32);
  if (is_unsigned(dtype)) return {low, word(0)};
  const uint32_t last = writer_.inst(PGR_OP_CONST, DType::I32, 1, {}, 31);
  return {low, cast(op(PGR_OP_SHR, DType::I32, {cast(value, DType::I32), last}), DType::U32)};
}

// The words of the magnitude: its multiple of 2^32, and what is left, which the format holds
// exactly.
Pair Int64Math::from_float(uint32_t value, DType dtype, bool is_signed) {
  const uint32_t zero = real(0, dtype), limit = real(std::ldexp(1.0, is_signed ? 63 : 64), dtype);
  const uint32_t negative = flag(PGR_OP_CMPLT, value, zero),
                 below = op(PGR_OP_SUB, dtype, {zero, value});
  const uint32_t size = op(PGR_OP_WHERE, dtype, {negative, below, value});
  const uint32_t high = cast(op(PGR_OP_MUL, dtype, {size, real(0x1p-32, dtype)}), DType::U32);
  const uint32_t taken = op(PGR_OP_MUL, dtype, {cast(high, dtype), real(0x1p32, dtype)});
  const Pair whole = {cast(op(PGR_OP_SUB, dtype, {size, taken}), DType::U32), high};
  // Saturation; NaN is neither below the limit nor positive.
  const uint32_t fits = flag(PGR_OP_CMPLT, size, limit),
                 is_number = flag(PGR_OP_CMPEQ, value, value);
  const Pair high_end = constant(is_signed ? ~uint64_t{0} >> 1 : ~uint64_t{0});
  const Pair low_end = constant(is_signed ? uint64_t{1} << 63 : 0);
  const Pair down = is_signed ? where(fits, negate(whole), low_end) : low_end;
  return where(is_number, where(negative, down, where(fits, whole, high_end)), constant(0));
}

uint32_t Int64Math::to(Pair a, DType dtype, bool is_signed) {
  if (dtype == DType::Bool) return flag(PGR_OP_CMPNE, u32(PGR_OP_OR, a.low, a.high), word(0));
  if (!is_float(dtype)) return dtype == DType::U32 ? a.low : cast(a.low, dtype);
  if (dtype == DType::F64) {  // both words and the product are exact: the sum rounds once
    const uint32_t high = cast(is_signed ? cast(a.high, DType::I32) : a.high, dtype);
    return op(PGR_OP_ADD, dtype,
              {op(PGR_OP_MUL, dtype, {high, real(0x1p32, dtype)}), cast(a.low, dtype)});
  }
  const uint32_t wide = to_f32(a, is_signed, dtype != DType::F32);
  return dtype == DType::F32 ? wide : cast(wide, dtype);
}

// The magnitude is shifted up until its top bit is set; what its upper word then cuts off is put in
// that word's last bit, far below where f32 rounds. With `to_odd` the f32 is exact but for its last
// bit, which says that bits are missing: it can be rounded to a smaller format.
uint32_t Int64Math::to_f32(Pair a, bool is_signed, bool to_odd) {
  Pair size = is_signed ? magnitude(a) : a;
  uint32_t exponent = word(127 + 32);
  for (uint32_t step : {32u, 16u, 8u, 4u, 2u, 1u}) {
    const uint32_t room = step == 32 ? flag(PGR_OP_CMPEQ, size.high, word(0))
                                     : flag(PGR_OP_CMPLT, size.high, word(1u << (32 - step)));
    size = where(room, shift_left(size, constant(step)), size);
    exponent =
        op(PGR_OP_WHERE, DType::U32, {room, u32(PGR_OP_SUB, exponent, word(step)), exponent});
  }
  const auto sticky = [&](uint32_t rest) { return number(flag(PGR_OP_CMPNE, rest, word(0))); };
  uint32_t top = u32(PGR_OP_OR, size.high, sticky(size.low));
  if (to_odd) {
    const uint32_t last = u32(PGR_OP_SHL, sticky(u32(PGR_OP_AND, top, word(0xff))), word(8));
    top = u32(PGR_OP_OR, u32(PGR_OP_AND, top, word(~0xffu)), last);
  }
  const uint32_t scale = op(PGR_OP_BITCAST, DType::F32, {u32(PGR_OP_SHL, exponent, word(23))});
  const uint32_t value = op(PGR_OP_MUL, DType::F32, {cast(top, DType::F32), scale});
  if (!is_signed) return value;
  return op(PGR_OP_WHERE, DType::F32,
            {is_negative(a), op(PGR_OP_SUB, DType::F32, {real(0, DType::F32), value}), value});
}

}  // namespace plugrad::codegen
