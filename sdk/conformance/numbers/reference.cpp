#include "conformance/numbers/reference.h"

#include <stdexcept>

namespace plugrad::conformance {
namespace {

__extension__ typedef __int128 Wide;

constexpr int kMostBits = 64;  // bits of an integer

Wide integer_value(uint32_t dtype, uint64_t bits) {
  if (dtype == PGR_DTYPE_BOOL) return bits != 0;
  if (!is_signed(dtype)) return static_cast<Wide>(bits);
  const int width = width_of(dtype);
  const Wide sign = static_cast<Wide>(bits >> (width - 1) & 1) << width;
  return static_cast<Wide>(bits) - sign;
}

uint64_t wrap_to_dtype(uint32_t dtype, Wide value) {
  const int width = width_of(dtype);
  const auto low = static_cast<uint64_t>(value);
  return width == kMostBits ? low : low & ((uint64_t{1} << width) - 1);
}

Wide lowest(uint32_t dtype) {
  return is_signed(dtype) ? -(static_cast<Wide>(1) << (width_of(dtype) - 1)) : 0;
}
Wide highest(uint32_t dtype) {
  const int digits = width_of(dtype) - (is_signed(dtype) ? 1 : 0);
  return (static_cast<Wide>(1) << digits) - 1;
}

Wide divide(Wide x, Wide y) {
  return y == 0 ? 0 : x / y;
}

// Only the low 64 bits of a shift matter.
Wide shift_left(Wide x, Wide count, int width) {
  if (count < 0 || count >= width) return 0;
  return static_cast<Wide>(static_cast<uint64_t>(x) << static_cast<int>(count));
}
Wide shift_right(Wide x, Wide count, int width) {
  if (count < 0 || count >= width) return x < 0 ? -1 : 0;
  return x >> static_cast<int>(count);
}

Wide integer_alu(uint32_t op, uint32_t dtype, Wide x, Wide y) {
  switch (op) {
    case PGR_OP_ADD:
      return x + y;
    case PGR_OP_SUB:
      return x - y;
    case PGR_OP_MUL:
      return static_cast<Wide>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
    case PGR_OP_NEG:
      return -x;
    case PGR_OP_IDIV:
      return divide(x, y);
    case PGR_OP_MOD:
      return x - y * divide(x, y);
    case PGR_OP_MAX:
      return x > y ? x : y;
    case PGR_OP_AND:
      return x & y;
    case PGR_OP_OR:
      return x | y;
    case PGR_OP_XOR:
      return x ^ y;
    case PGR_OP_SHL:
      return shift_left(x, y, width_of(dtype));
    case PGR_OP_SHR:
      return shift_right(x, y, width_of(dtype));
    case PGR_OP_CMPLT:
      return x < y;
    case PGR_OP_CMPEQ:
      return x == y;
    case PGR_OP_CMPNE:
      return x != y;
    default:
      throw std::logic_error("no integer op");
  }
}

bool compare_floats(uint32_t op, uint32_t dtype, std::span<const uint64_t> s) {
  Real x, y;
  set_value(x, dtype, s[0]);
  set_value(y, dtype, s[1]);
  if (op == PGR_OP_CMPLT) return mpfr_less_p(x, y) != 0;
  return (mpfr_equal_p(x, y) != 0) == (op == PGR_OP_CMPEQ);
}

int max_value(mpfr_ptr out, mpfr_srcptr x, mpfr_srcptr y) {
  if (mpfr_nan_p(x) || mpfr_nan_p(y)) {
    mpfr_set_nan(out);
    return 0;
  }
  return mpfr_set(out, mpfr_greater_p(x, y) ? x : y, MPFR_RNDN);
}

int trunc_value(mpfr_ptr out, mpfr_srcptr x) {
  mpfr_trunc(out, x);
  return 0;  // an integral value of the same format is exact
}

// `out` rounded to nearest even at its own precision; returns MPFR's ternary value.
int compute(mpfr_ptr out, uint32_t op, mpfr_srcptr x, mpfr_srcptr y, mpfr_srcptr z) {
  switch (op) {
    case PGR_OP_ADD:
      return mpfr_add(out, x, y, MPFR_RNDN);
    case PGR_OP_SUB:
      return mpfr_sub(out, x, y, MPFR_RNDN);
    case PGR_OP_MUL:
      return mpfr_mul(out, x, y, MPFR_RNDN);
    case PGR_OP_NEG:
      return mpfr_neg(out, x, MPFR_RNDN);
    case PGR_OP_MAX:
      return max_value(out, x, y);
    case PGR_OP_RECIP:
      return mpfr_ui_div(out, 1, x, MPFR_RNDN);
    case PGR_OP_FDIV:
      return mpfr_div(out, x, y, MPFR_RNDN);
    case PGR_OP_SQRT:
      return mpfr_sqrt(out, x, MPFR_RNDN);
    case PGR_OP_FMA:
      return mpfr_fma(out, x, y, z, MPFR_RNDN);
    case PGR_OP_TRUNC:
      return trunc_value(out, x);
    case PGR_OP_EXP2:
      return mpfr_exp2(out, x, MPFR_RNDN);
    case PGR_OP_LOG2:
      return mpfr_log2(out, x, MPFR_RNDN);
    case PGR_OP_SIN:
      return mpfr_sin(out, x, MPFR_RNDN);
    default:
      throw std::logic_error("no float op");
  }
}

int compute_bits(mpfr_ptr out, const Operation& o, std::span<const uint64_t> s) {
  Real values[3];
  for (size_t i = 0; i < s.size(); ++i) set_value(values[i], o.from, s[i]);
  return compute(out, o.op, values[0], values[1], values[2]);
}

int set_integer(mpfr_ptr out, uint32_t dtype, uint64_t bits) {
  const Wide value = integer_value(dtype, bits);
  if (value < 0) return mpfr_set_si(out, static_cast<long>(value), MPFR_RNDN);
  return mpfr_set_ui(out, static_cast<unsigned long>(value), MPFR_RNDN);
}

int set_cast(mpfr_ptr out, uint32_t from, uint64_t bits) {
  if (!is_float(from)) return set_integer(out, from, bits);
  Real value;
  set_value(value, from, bits);
  return mpfr_set(out, value, MPFR_RNDN);
}

Expected float_to_integer(uint32_t from, uint32_t to, uint64_t bits) {
  if (is_nan(from, bits) || is_infinite(from, bits)) return {0, true};
  Real value;
  set_value(value, from, bits);
  mpfr_trunc(value, value);
  const bool is_below = mpfr_sgn(value) < 0;
  mpfr_abs(value, value, MPFR_RNDN);
  if (mpfr_cmp_ui_2exp(value, 1, kMostBits) >= 0) return {0, true};
  const Wide magnitude = static_cast<Wide>(mpfr_get_ui(value, MPFR_RNDZ));
  const Wide whole = is_below ? -magnitude : magnitude;
  if (whole < lowest(to) || whole > highest(to)) return {0, true};
  return {wrap_to_dtype(to, whole), false};
}

Expected cast(uint32_t from, uint32_t to, uint64_t bits) {
  if (to == PGR_DTYPE_BOOL) return {is_float(from) ? !is_zero(from, bits) : bits != 0, false};
  if (is_float(to)) {
    Real out(format_of(to).precision());
    const int ternary = set_cast(out, from, bits);
    return {round_to_format(out, ternary, to), false};
  }
  if (is_float(from)) return float_to_integer(from, to, bits);
  return {wrap_to_dtype(to, integer_value(from, bits)), false};
}

bool is_compare(uint32_t op) {
  return op == PGR_OP_CMPLT || op == PGR_OP_CMPEQ || op == PGR_OP_CMPNE;
}

Expected float_result(const Operation& o, std::span<const uint64_t> s) {
  // The sign bit of a NaN too.
  if (o.op == PGR_OP_NEG) return {s[0] ^ format_of(o.from).sign_bit(), false};
  Real out(format_of(o.to).precision());
  const int ternary = compute_bits(out, o, s);
  return {round_to_format(out, ternary, o.to), false};
}

}  // namespace

uint32_t Operation::source_count() const {
  switch (op) {
    case PGR_OP_WHERE:
    case PGR_OP_FMA:
      return 3;
    case PGR_OP_NEG:
    case PGR_OP_RECIP:
    case PGR_OP_SQRT:
    case PGR_OP_TRUNC:
    case PGR_OP_CAST:
    case PGR_OP_BITCAST:
    case PGR_OP_EXP2:
    case PGR_OP_LOG2:
    case PGR_OP_SIN:
      return 1;
    default:
      return 2;
  }
}

uint32_t Operation::source_dtype(uint32_t which) const {
  return op == PGR_OP_WHERE && which == 0 ? uint32_t{PGR_DTYPE_BOOL} : from;
}

Operation make_operation(uint32_t op, uint32_t dtype) {
  return {op, dtype, is_compare(op) ? uint32_t{PGR_DTYPE_BOOL} : dtype};
}

bool is_operation(uint32_t op, uint32_t from, uint32_t to) {
  const bool is_math_float = from >= PGR_DTYPE_F16 && from <= PGR_DTYPE_F64;
  const bool is_number = is_integer(from) || is_math_float;
  if (from == PGR_DTYPE_VOID || to == PGR_DTYPE_VOID) return false;
  if (op == PGR_OP_CAST) return true;
  if (op == PGR_OP_BITCAST)
    return from != PGR_DTYPE_BOOL && to != PGR_DTYPE_BOOL && width_of(from) == width_of(to);
  if (to != make_operation(op, from).to) return false;
  switch (op) {
    case PGR_OP_ADD:
    case PGR_OP_SUB:
    case PGR_OP_MUL:
    case PGR_OP_NEG:
      return is_number;
    case PGR_OP_IDIV:
    case PGR_OP_MOD:
    case PGR_OP_SHL:
    case PGR_OP_SHR:
      return is_integer(from);
    case PGR_OP_AND:
    case PGR_OP_OR:
    case PGR_OP_XOR:
      return is_integer(from) || from == PGR_DTYPE_BOOL;
    case PGR_OP_MAX:
    case PGR_OP_CMPLT:
    case PGR_OP_CMPEQ:
    case PGR_OP_CMPNE:
      return is_number || from == PGR_DTYPE_BOOL;
    case PGR_OP_WHERE:
      return true;
    default:
      return op >= PGR_OP_ADD && op <= PGR_OP_SIN && is_math_float;
  }
}

Expected expected_result(const Operation& o, std::span<const uint64_t> s) {
  if (o.op == PGR_OP_BITCAST) return {s[0], false};
  if (o.op == PGR_OP_WHERE) return {s[0] ? s[1] : s[2], false};
  if (o.op == PGR_OP_CAST) return cast(o.from, o.to, s[0]);
  if (is_float(o.from))
    return is_compare(o.op) ? Expected{compare_floats(o.op, o.from, s), false} : float_result(o, s);
  const Wide x = integer_value(o.from, s[0]);
  const Wide y = s.size() > 1 ? integer_value(o.from, s[1]) : 0;
  return {wrap_to_dtype(o.to, integer_alu(o.op, o.from, x, y)), false};
}

void set_real_result(mpfr_ptr out, const Operation& o, std::span<const uint64_t> s) {
  if (o.op == PGR_OP_CAST)
    set_cast(out, o.from, s[0]);
  else
    compute_bits(out, o, s);
}

}  // namespace plugrad::conformance
