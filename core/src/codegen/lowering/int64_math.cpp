// Arithmetic on pairs of words, and conversions to and from other dtypes.
#include <algorithm>
#include <bit>
#include <cmath>

#include "codegen/lowering/int64_emulation.h"
#include "codegen/lowering/lowering.h"

namespace plugrad::codegen {

uint32_t Int64Math::op(uint16_t op_number, DType dtype, std::initializer_list<uint32_t> sources) {
  uint32_t widest = 1;
  for (uint32_t s : sources) widest = std::max(widest, lanes(s));
  return writer_.inst(op_number, dtype, widest, sources);
}

uint32_t Int64Math::word(uint32_t value) {
  return writer_.constant(DType::U32, value);
}

uint32_t Int64Math::invert(uint32_t condition) {
  const uint32_t yes = writer_.constant(DType::Bool, 1);
  return op(PGR_OP_XOR, DType::Bool, {condition, yes});
}

Pair Int64Math::constant(uint64_t value) {
  return {word(static_cast<uint32_t>(value)), word(static_cast<uint32_t>(value >> 32))};
}

Pair Int64Math::where(uint32_t condition, Pair yes, Pair no) {
  return {op(PGR_OP_WHERE, DType::U32, {condition, yes.low, no.low}),
          op(PGR_OP_WHERE, DType::U32, {condition, yes.high, no.high})};
}

Pair Int64Math::bitwise(uint16_t op_number, Pair a, Pair b) {
  return {u32(op_number, a.low, b.low), u32(op_number, a.high, b.high)};
}

// The low words carry if their sum is less than either.
Pair Int64Math::add(Pair a, Pair b) {
  const uint32_t low = u32(PGR_OP_ADD, a.low, b.low);
  const uint32_t carry = number(flag(PGR_OP_CMPLT, low, a.low));
  return {low, u32(PGR_OP_ADD, u32(PGR_OP_ADD, a.high, b.high), carry)};
}

Pair Int64Math::sub(Pair a, Pair b) {
  const uint32_t borrow = number(flag(PGR_OP_CMPLT, a.low, b.low));
  return {u32(PGR_OP_SUB, a.low, b.low), u32(PGR_OP_SUB, u32(PGR_OP_SUB, a.high, b.high), borrow)};
}

// The upper half of a 32 x 32 bit product, from products of 16-bit halves; no sum overflows.
uint32_t Int64Math::high_product(uint32_t a, uint32_t b) {
  const uint32_t mask = word(0xffff), half = word(16);
  const uint32_t a0 = u32(PGR_OP_AND, a, mask), a1 = u32(PGR_OP_SHR, a, half);
  const uint32_t b0 = u32(PGR_OP_AND, b, mask), b1 = u32(PGR_OP_SHR, b, half);
  const uint32_t low = u32(PGR_OP_SHR, u32(PGR_OP_MUL, a0, b0), half);
  const uint32_t middle = u32(PGR_OP_ADD, u32(PGR_OP_MUL, a1, b0), low);
  const uint32_t other = u32(PGR_OP_ADD, u32(PGR_OP_MUL, a0, b1), u32(PGR_OP_AND, middle, mask));
  const uint32_t carries =
      u32(PGR_OP_ADD, u32(PGR_OP_SHR, middle, half), u32(PGR_OP_SHR, other, half));
  return u32(PGR_OP_ADD, u32(PGR_OP_MUL, a1, b1), carries);
}

Pair Int64Math::mul(Pair a, Pair b) {
  const uint32_t crossed =
      u32(PGR_OP_ADD, u32(PGR_OP_MUL, a.low, b.high), u32(PGR_OP_MUL, a.high, b.low));
  return {u32(PGR_OP_MUL, a.low, b.low), u32(PGR_OP_ADD, high_product(a.low, b.low), crossed)};
}

// A word shift by 32 or more gives 0 and a negative unsigned count is large, so each term is right
// for counts below 2^32; larger counts clear the value.
Pair Int64Math::shift_left(Pair a, Pair count) {
  const uint32_t n = count.low, width = word(32);
  const uint32_t across = u32(PGR_OP_SHR, a.low, u32(PGR_OP_SUB, width, n));
  const uint32_t far = u32(PGR_OP_SHL, a.low, u32(PGR_OP_SUB, n, width));
  const uint32_t high = u32(PGR_OP_OR, u32(PGR_OP_OR, u32(PGR_OP_SHL, a.high, n), across), far);
  const uint32_t small = flag(PGR_OP_CMPEQ, count.high, word(0));
  return where(small, {u32(PGR_OP_SHL, a.low, n), high}, constant(0));
}

Pair Int64Math::shift_right(Pair a, Pair count, bool is_signed) {
  const DType dtype = is_signed ? DType::I32 : DType::U32;
  const auto high_shifted = [&](uint32_t by) {
    const uint32_t shifted = op(PGR_OP_SHR, dtype, {cast(a.high, dtype), cast(by, dtype)});
    return cast(shifted, DType::U32);
  };
  const uint32_t n = count.low, width = word(32);
  const uint32_t across = u32(PGR_OP_SHL, a.high, u32(PGR_OP_SUB, width, n));
  const uint32_t near = u32(PGR_OP_OR, u32(PGR_OP_SHR, a.low, n), across);
  const uint32_t far = high_shifted(u32(PGR_OP_SUB, n, width));
  const uint32_t low = op(PGR_OP_WHERE, DType::U32, {flag(PGR_OP_CMPLT, n, width), near, far});
  const uint32_t nothing = is_signed ? high_shifted(width) : word(0);
  const uint32_t small = flag(PGR_OP_CMPEQ, count.high, word(0));
  return where(small, {low, high_shifted(n)}, {nothing, nothing});
}

uint32_t Int64Math::less(Pair a, Pair b, bool is_signed) {
  const DType dtype = is_signed ? DType::I32 : DType::U32;
  const uint32_t high = flag(PGR_OP_CMPLT, cast(a.high, dtype), cast(b.high, dtype));
  const uint32_t same = flag(PGR_OP_CMPEQ, a.high, b.high), low = flag(PGR_OP_CMPLT, a.low, b.low);
  return op(PGR_OP_OR, DType::Bool, {high, op(PGR_OP_AND, DType::Bool, {same, low})});
}

uint32_t Int64Math::equal(Pair a, Pair b) {
  const Pair bits = bitwise(PGR_OP_XOR, a, b);
  return flag(PGR_OP_CMPEQ, u32(PGR_OP_OR, bits.low, bits.high), word(0));
}

uint32_t Int64Math::is_negative(Pair a) {
  return flag(PGR_OP_CMPNE, u32(PGR_OP_SHR, a.high, word(31)), word(0));
}

uint32_t Int64Math::spread(uint32_t value, uint32_t wanted) {
  return lanes(value) == wanted ? value : writer_.inst(PGR_OP_VECTOR, DType::U32, wanted, {value});
}

// A private array of one value that a loop updates.
uint32_t Int64Math::new_array(uint32_t lane_count, uint32_t start) {
  const uint32_t number =
      writer_.array({PGR_SPACE_PRIVATE, PGR_DTYPE_U32, 4 * lane_count, lane_count, lane_count});
  const uint32_t array = writer_.inst(PGR_OP_ARRAY, DType::U32, 1, {}, number);
  const uint32_t zero = writer_.constant(DType::I32, 0);
  writer_.inst(PGR_OP_STORE, DType::Void, lane_count, {array, zero, spread(start, lane_count)});
  return array;
}

Int64Math::Division Int64Math::divide(Pair a, Pair b, bool is_signed) {
  if (!is_signed) return divide_unsigned(a, b);
  const Division parts = divide_unsigned(magnitude(a), magnitude(b));
  const uint32_t differ = flag(PGR_OP_CMPNE, is_negative(a), is_negative(b));
  return {where(differ, negate(parts.quotient), parts.quotient),
          where(is_negative(a), negate(parts.remainder), parts.remainder)};
}

// One bit of the quotient: the remainder takes the dividend's next bit and subtracts the divisor if
// it fits. Quotient bits enter the dividend's words from below as its bits leave at the top.
void Int64Math::divide_step(Pair divisor, const uint32_t arrays[4], uint32_t lane_count) {
  const uint32_t zero = writer_.constant(DType::I32, 0);
  const auto load = [&](uint32_t array) {
    return writer_.inst(PGR_OP_LOAD, DType::U32, lane_count, {array, zero});
  };
  const Pair quotient = {load(arrays[0]), load(arrays[1])},
             rest = {load(arrays[2]), load(arrays[3])};
  const uint32_t one = word(1), last = word(31);
  const auto doubled = [&](uint32_t a, uint32_t below) {
    return u32(PGR_OP_OR, u32(PGR_OP_SHL, a, one), u32(PGR_OP_SHR, below, last));
  };
  const Pair next = {doubled(rest.low, quotient.high), doubled(rest.high, rest.low)};
  const uint32_t overflowed = flag(PGR_OP_CMPNE, u32(PGR_OP_SHR, rest.high, last), word(0));
  const uint32_t fits =
      op(PGR_OP_OR, DType::Bool, {overflowed, invert(less(next, divisor, false))});
  const Pair reduced = where(fits, sub(next, divisor), next);
  const uint32_t low = u32(PGR_OP_OR, u32(PGR_OP_SHL, quotient.low, one), number(fits));
  const uint32_t values[4] = {low, doubled(quotient.high, quotient.low), reduced.low, reduced.high};
  for (size_t i = 0; i < 4; ++i)
    writer_.inst(PGR_OP_STORE, DType::Void, lane_count,
                 {arrays[i], zero, spread(values[i], lane_count)});
}

// Long division by bits. Scalar operands that fit a word are divided as words.
Int64Math::Division Int64Math::divide_unsigned(Pair a, Pair b) {
  const uint32_t lane_count = std::max({lanes(a.low), lanes(a.high), lanes(b.low), lanes(b.high)});
  const uint32_t zero = writer_.constant(DType::I32, 0);
  uint32_t steps = writer_.constant(DType::I32, 64);
  uint32_t quotient = a.low, rest = word(0);
  if (lane_count == 1 && divides_words_) {
    const uint32_t small = flag(PGR_OP_CMPEQ, u32(PGR_OP_OR, a.high, b.high), word(0));
    quotient = op(PGR_OP_WHERE, DType::U32, {small, u32(PGR_OP_IDIV, a.low, b.low), a.low});
    rest = op(PGR_OP_WHERE, DType::U32, {small, u32(PGR_OP_MOD, a.low, b.low), rest});
    steps = op(PGR_OP_WHERE, DType::I32, {small, zero, steps});
  }
  const uint32_t arrays[4] = {new_array(lane_count, quotient), new_array(lane_count, a.high),
                              new_array(lane_count, rest), new_array(lane_count, word(0))};
  const uint32_t loop = writer_.inst(PGR_OP_LOOP, DType::I32, 1, {zero, steps});
  divide_step(b, arrays, lane_count);
  writer_.inst(PGR_OP_END_LOOP, DType::Void, 1, {loop});
  uint32_t out[4];
  for (size_t i = 0; i < 4; ++i)
    out[i] = writer_.inst(PGR_OP_LOAD, DType::U32, lane_count, {arrays[i], zero});
  const uint32_t by_zero = equal(b, constant(0));
  return {where(by_zero, constant(0), {out[0], out[1]}), {out[2], out[3]}};
}

uint32_t Int64Math::real(double value, DType dtype) {
  const uint64_t bits = dtype == DType::F64 ? std::bit_cast<uint64_t>(value)
                                            : std::bit_cast<uint32_t>(static_cast<float>(value));
  return writer_.constant(dtype, bits);
}

Pair Int64Math::from(uint32_t value, DType dtype, bool is_signed) {
  if (is_small_float(dtype)) return from_float(cast(value, DType::F32), DType::F32, is_signed);
  if (is_float(dtype)) return from_float(value, dtype, is_signed);
  const uint32_t low = dtype == DType::Bool ? number(value) : cast(value, DType::U32);
  if (is_unsigned(dtype)) return {low, word(0)};
  const uint32_t last = writer_.constant(DType::I32, 31);
  return {low, cast(op(PGR_OP_SHR, DType::I32, {cast(value, DType::I32), last}), DType::U32)};
}

// The words of the magnitude: the multiple of 2^32, then the rest, which the format holds exactly.
Pair Int64Math::from_float(uint32_t value, DType dtype, bool is_signed) {
  const uint32_t zero = real(0, dtype), limit = real(std::ldexp(1.0, is_signed ? 63 : 64), dtype);
  const uint32_t negative = flag(PGR_OP_CMPLT, value, zero),
                 below = op(PGR_OP_SUB, dtype, {zero, value});
  const uint32_t size = op(PGR_OP_WHERE, dtype, {negative, below, value});
  const uint32_t high = cast(op(PGR_OP_MUL, dtype, {size, real(0x1p-32, dtype)}), DType::U32);
  const uint32_t taken = op(PGR_OP_MUL, dtype, {cast(high, dtype), real(0x1p32, dtype)});
  const Pair whole = {cast(op(PGR_OP_SUB, dtype, {size, taken}), DType::U32), high};
  // Saturates; NaN is neither below the limit nor positive.
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
  if (dtype == DType::F64) {  // both words and the product are exact, so the sum rounds once
    const uint32_t high = cast(is_signed ? cast(a.high, DType::I32) : a.high, dtype);
    return op(PGR_OP_ADD, dtype,
              {op(PGR_OP_MUL, dtype, {high, real(0x1p32, dtype)}), cast(a.low, dtype)});
  }
  const uint32_t wide = to_f32(a, is_signed, dtype != DType::F32);
  return dtype == DType::F32 ? wide : cast(wide, dtype);
}

// The magnitude is shifted until its top bit is set. The bits below its upper word are ORed into
// that word's last bit, far below the rounding position of f32. With `to_odd` the f32 is rounded to
// odd, so that it can be rounded again to a smaller format.
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
