// Expands a remainder of floats. Quotients whose digits a float holds take one division:
//   q = trunc(a / b)    r = fma(-q, b, a)    r + b if q was rounded up
// Where one of the lanes has a larger quotient, a loop divides the mantissas bit by bit, as many
// times as the exponents differ. It uses ops that every device has.
// Source: Muller et al., Handbook of Floating-Point Arithmetic (2018), chapters 4 and 8.
#include "codegen/emit/remainder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "codegen/kernel.h"

namespace plugrad::codegen {
namespace {

// Below this error of a division, in ulp, the quotient is one of two integers (see quotient()).
constexpr uint32_t kMostDivisionUlps = 4;

class RemainderWriter {
 public:
  RemainderWriter(IrWriter& writer, const pgr_device_caps& caps, DType dtype)
      : writer_(writer),
        caps_(caps),
        real_(dtype),
        word_(dtype == DType::F64 ? DType::I64 : DType::I32),
        digits_(dtype == DType::F64 ? 52 : 23),
        bias_(dtype == DType::F64 ? 1023 : 127) {}

  uint32_t write(uint32_t a, uint32_t b) {
    const uint32_t bits = bits_of(a), magnitude = word(infinity() | (one() - 1));
    const uint32_t x = op(PGR_OP_AND, bits, magnitude);
    const uint32_t y = op(PGR_OP_AND, bits_of(b), magnitude);
    const uint32_t size = divides() ? by_quotient(x, y) : by_digits(x, y);
    const uint32_t sign = op(PGR_OP_XOR, bits, x);
    return real_of(op(PGR_OP_OR, size, sign));
  }

 private:
  struct Parts {
    uint32_t mantissa, exponent;
  };

  // ---- Instructions on words; constants have one lane ----
  uint32_t lanes(uint32_t value) const { return writer_.insts()[value].lanes; }
  uint32_t inst(uint16_t number, DType dtype, std::initializer_list<uint32_t> sources) {
    uint32_t widest = 1;
    for (uint32_t s : sources) widest = std::max(widest, lanes(s));
    return writer_.inst(number, dtype, widest, sources);
  }
  uint32_t op(uint16_t number, uint32_t a, uint32_t b) { return inst(number, word_, {a, b}); }
  uint32_t add(uint32_t a, int64_t b) { return op(PGR_OP_ADD, a, word(b)); }
  uint32_t minus(uint32_t a, uint32_t b) { return op(PGR_OP_ADD, a, inst(PGR_OP_NEG, word_, {b})); }
  uint32_t less(uint32_t a, uint32_t b) { return inst(PGR_OP_CMPLT, DType::Bool, {a, b}); }
  uint32_t either(uint32_t a, uint32_t b) { return inst(PGR_OP_OR, DType::Bool, {a, b}); }
  uint32_t where(uint32_t condition, uint32_t yes, uint32_t no) {
    return inst(PGR_OP_WHERE, static_cast<DType>(writer_.insts()[yes].dtype), {condition, yes, no});
  }
  uint32_t bits_of(uint32_t a) { return inst(PGR_OP_BITCAST, word_, {a}); }
  uint32_t real_of(uint32_t bits) { return inst(PGR_OP_BITCAST, real_, {bits}); }
  uint32_t cast(DType to, uint32_t a) {
    return writer_.insts()[a].dtype == static_cast<uint32_t>(to) ? a : inst(PGR_OP_CAST, to, {a});
  }
  uint32_t word(int64_t value) { return writer_.constant(word_, static_cast<uint64_t>(value)); }
  uint32_t number(double value) {
    return writer_.constant(real_, real_ == DType::F64
                                       ? std::bit_cast<uint64_t>(value)
                                       : std::bit_cast<uint32_t>(static_cast<float>(value)));
  }
  int64_t one() const { return int64_t{1} << digits_; }  // the bit above the mantissa
  int64_t infinity() const { return (int64_t{2} * bias_ + 1) << digits_; }

  // A private array of one value, which compilers keep in registers.
  uint32_t new_variable(uint32_t lane_count, uint32_t start) {
    const auto bytes = static_cast<uint32_t>(size_of(word_)) * lane_count;
    const uint32_t number = writer_.array(
        {PGR_SPACE_PRIVATE, static_cast<uint32_t>(word_), bytes, lane_count, lane_count});
    const uint32_t variable = writer_.inst(PGR_OP_ARRAY, word_, 1, {}, number);
    store(variable, start, lane_count);
    return variable;
  }
  uint32_t load(uint32_t variable, uint32_t lane_count) {
    return writer_.inst(PGR_OP_LOAD, word_, lane_count, {variable, place()});
  }
  void store(uint32_t variable, uint32_t value, uint32_t lane_count) {
    if (lanes(value) != lane_count) value = writer_.inst(PGR_OP_VECTOR, word_, lane_count, {value});
    writer_.inst(PGR_OP_STORE, DType::Void, lane_count, {variable, place(), value});
  }
  uint32_t place() { return writer_.constant(DType::I32, 0); }

  // The largest of the lanes of a word.
  uint32_t largest(uint32_t value) {
    while (lanes(value) > 1) {
      const uint32_t half = lanes(value) / 2;
      value = op(PGR_OP_MAX, writer_.inst(PGR_OP_LANE, word_, half, {value}, 0),
                 writer_.inst(PGR_OP_LANE, word_, half, {value}, half));
    }
    return value;
  }

  // ---- By one division ----
  bool divides() const {
    return claims(caps_, Op::FDiv, real_) && claims(caps_, Op::Fma, real_) &&
           claims(caps_, Op::Trunc, real_) && caps_.division <= kMostDivisionUlps;
  }

  // trunc(a / b) or one more, while it has few enough digits. Inexact quotients are made larger by
  // more than their error.
  uint32_t quotient(uint32_t a, uint32_t b) {
    uint32_t ratio = inst(PGR_OP_FDIV, real_, {a, b});
    if (caps_.division != 0)
      ratio = inst(PGR_OP_MUL, real_, {ratio, number(1 + std::ldexp(8, -digits_))});
    return inst(PGR_OP_TRUNC, real_, {ratio});
  }
  int quotient_digits() const { return caps_.division == 0 ? digits_ + 1 : digits_ - 5; }

  // The bits of the remainder's magnitude, of those of magnitudes. An infinite q counts as large.
  uint32_t by_quotient(uint32_t x, uint32_t y) {
    const uint32_t a = real_of(x), b = real_of(y), q = quotient(a, b), bits = bits_of(q);
    const uint32_t rest = inst(PGR_OP_FMA, real_, {inst(PGR_OP_NEG, real_, {q}), b, a});
    const uint32_t raised = inst(PGR_OP_ADD, real_, {rest, b});
    const uint32_t small = bits_of(where(less(rest, number(0)), raised, rest));
    const uint32_t quick = where(less(a, b), x, small);  // also if b is infinite
    const uint32_t all = lanes(quick), result = new_variable(all, quick);
    const uint32_t most = word(((int64_t{bias_} + quotient_digits()) << digits_) - 1);
    const uint32_t block = writer_.begin_if(less(most, largest(bits)));
    store(result, where(less(most, bits), by_digits(x, y), quick), all);
    writer_.end_if(block);
    return load(result, all);
  }

  // ---- By digits ----
  // x = mantissa * 2^(exponent - bias - digits), with the leading one in the mantissa. Converting a
  // subnormal mantissa to a float finds its leading one.
  Parts parts(uint32_t x) {
    const uint32_t tiny = less(x, word(one()));
    const uint32_t scaled = bits_of(cast(real_, x));
    const uint32_t now = where(tiny, scaled, x);
    const uint32_t exponent = op(PGR_OP_SHR, now, word(digits_));
    const uint32_t mantissa = op(PGR_OP_OR, op(PGR_OP_AND, now, word(one() - 1)), word(one()));
    return {mantissa, where(tiny, add(exponent, 1 - bias_ - digits_), exponent)};
  }

  // mantissa * 2^(exponent - bias - digits), which a float holds.
  uint32_t joined(uint32_t mantissa, uint32_t exponent) {
    const uint32_t real = bits_of(cast(real_, mantissa));
    const uint32_t moved = add(exponent, -bias_ - digits_);
    const uint32_t field = op(PGR_OP_ADD, op(PGR_OP_SHR, real, word(digits_)), moved);
    const uint32_t normal = op(PGR_OP_ADD, real, op(PGR_OP_SHL, moved, word(digits_)));
    // One of the two shifts is by 0, or by a negative count, which gives 0.
    const uint32_t up = op(PGR_OP_SHL, mantissa, add(exponent, -1));
    const uint32_t down = op(PGR_OP_SHR, mantissa, minus(word(1), exponent));
    const uint32_t zero = word(0);
    const uint32_t is_normal =
        inst(PGR_OP_AND, DType::Bool, {less(zero, mantissa), less(zero, field)});
    return where(is_normal, normal, op(PGR_OP_OR, up, down));
  }

  // `a` or, if it is at least b, a - b.
  uint32_t reduced(uint32_t a, uint32_t b) { return where(less(a, b), a, minus(a, b)); }

  uint32_t by_digits(uint32_t x, uint32_t y) {
    const Parts a = parts(x), b = parts(y);
    const uint32_t invalid =
        either(either(less(word(infinity() - 1), x), less(word(infinity()), y)),
               inst(PGR_OP_CMPEQ, DType::Bool, {y, word(0)}));
    const uint32_t count = where(invalid, word(0), minus(a.exponent, b.exponent));
    const uint32_t all = lanes(count), rest = new_variable(all, a.mantissa);
    const uint32_t steps = cast(DType::I32, largest(count));
    const uint32_t loop = writer_.inst(PGR_OP_LOOP, DType::I32, 1, {place(), steps});
    const uint32_t now = load(rest, all), next = reduced(now, b.mantissa);
    const uint32_t is_active = less(cast(word_, loop), count);
    store(rest, where(is_active, op(PGR_OP_ADD, next, next), now), all);
    writer_.inst(PGR_OP_END_LOOP, DType::Void, 1, {loop});
    const uint32_t last = joined(reduced(load(rest, all), b.mantissa), b.exponent);
    const uint32_t nan = word(infinity() | one() >> 1);
    return where(invalid, nan, where(less(x, y), x, last));
  }

  IrWriter& writer_;
  const pgr_device_caps& caps_;
  const DType real_, word_;
  const int digits_, bias_;
};

}  // namespace

uint32_t write_remainder(IrWriter& writer, const pgr_device_caps& caps, DType dtype, uint32_t a,
                         uint32_t b) {
  return RemainderWriter(writer, caps, dtype).write(a, b);
}

}  // namespace plugrad::codegen
