#include "codegen/lowering/int64_math.h"

#include <algorithm>

namespace plugrad::codegen {

uint32_t Int64Math::op(uint16_t op_number, DType dtype, std::initializer_list<uint32_t> sources) {
  uint32_t widest = 1;
  for (uint32_t s : sources) widest = std::max(widest, lanes(s));
  return writer_.inst(op_number, dtype, widest, sources);
}

uint32_t Int64Math::word(uint32_t value) {
  return writer_.inst(PGR_OP_CONST, DType::U32, 1, {}, value);
}

uint32_t Int64Math::invert(uint32_t condition) {
  const uint32_t yes = writer_.inst(PGR_OP_CONST, DType::Bool, 1, {}, 1);
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

// The low words carried exactly when their sum is less than either.
Pair Int64Math::add(Pair a, Pair b) {
  const uint32_t low = u32(PGR_OP_ADD, a.low, b.low);
  const uint32_t carry = number(flag(PGR_OP_CMPLT, low, a.low));
  return {low, u32(PGR_OP_ADD, u32(PGR_OP_ADD, a.high, b.high), carry)};
}

Pair Int64Math::sub(Pair a, Pair b) {
  const uint32_t borrow = number(flag(PGR_OP_CMPLT, a.low, b.low));
  return {u32(PGR_OP_SUB, a.low, b.low), u32(PGR_OP_SUB, u32(PGR_OP_SUB, a.high, b.high), borrow)};
}

// The upper half of a 32 x 32 bit product, from four products of 16-bit halves; no sum below
// overflows.
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

// Word shifts by 32 and more give 0, and an unsigned count below 0 is a large one, so every term is
// right for all counts below 2^32; larger ones leave nothing.
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

// A private array of one value, for what changes in a loop.
uint32_t Int64Math::new_array(uint32_t lane_count, uint32_t start) {
  const uint32_t number =
      writer_.array({PGR_SPACE_PRIVATE, PGR_DTYPE_U32, 4 * lane_count, lane_count, lane_count});
  const uint32_t array = writer_.inst(PGR_OP_ARRAY, DType::U32, 1, {}, number);
  const uint32_t zero = writer_.inst(PGR_OP_CONST, DType::I32, 1, {}, 0);
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

// One bit of the quotient: the remainder takes the dividend's next bit, and the divisor is taken
// off where it fits. The dividend leaves its words at the top while the quotient enters at the
// bottom.
void Int64Math::divide_step(Pair divisor, const uint32_t arrays[4], uint32_t lane_count) {
  const uint32_t zero = writer_.inst(PGR_OP_CONST, DType::I32, 1, {}, 0);
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

// Long division by bits; operands of one lane that both fit a word are divided as words instead.
Int64Math::Division Int64Math::divide_unsigned(Pair a, Pair b) {
  const uint32_t lane_count = std::max({lanes(a.low), lanes(a.high), lanes(b.low), lanes(b.high)});
  const uint32_t zero = writer_.inst(PGR_OP_CONST, DType::I32, 1, {}, 0);
  uint32_t steps = writer_.inst(PGR_OP_CONST, DType::I32, 1, {}, 64);
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

}  // namespace plugrad::codegen
