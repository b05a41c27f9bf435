// Float expressions that the rules of this folder share.
#pragma once

#include <cmath>
#include <span>

#include "ir/graph.h"

namespace plugrad::codegen {

// An integer n near a float: n itself, and a sum whose lowest bits are n and a given offset.
struct Nearest {
  Id whole, sum;
};

// Expressions over one float dtype and its integer of the same size.
struct Math {
  Graph& g;
  DType real, integer;
  int mantissa_bits, bias;

  Math(Graph& graph, DType dtype)
      : g(graph),
        real(dtype),
        integer(dtype == DType::F64 ? DType::I64 : DType::I32),
        mantissa_bits(dtype == DType::F64 ? 52 : 23),
        bias(dtype == DType::F64 ? 1023 : 127) {}

  bool wide() const { return real == DType::F64; }
  Id c(double v) { return g.constant(real, v); }
  Id i(int64_t v) { return g.constant(integer, v); }
  Id add(Id a, Id b) { return g.binary(Op::Add, a, b); }
  Id sub(Id a, Id b) { return g.binary(Op::Sub, a, b); }
  Id mul(Id a, Id b) { return g.binary(Op::Mul, a, b); }
  Id less(Id a, Id b) { return g.binary(Op::CmpLt, a, b); }

  Id bits(Id x) { return g.add(Op::Bitcast, integer, {x}); }
  Id value(Id bits_of_x) { return g.add(Op::Bitcast, real, {bits_of_x}); }
  // The first half of the digits of x: the product of two such numbers is exact.
  Id high(Id x) {
    return value(g.binary(Op::And, bits(x), i(-(int64_t{1} << (mantissa_bits + 2) / 2))));
  }

  // For magnitudes below 2^(mantissa_bits - 2).
  Nearest nearest(Id x, double offset = 0) {
    const Id magic = c(std::ldexp(1.5, mantissa_bits) + offset), sum = add(x, magic);
    return {sub(sum, magic), sum};
  }

  // Horner's rule, highest coefficient first.
  Id polynomial(Id x, std::span<const double> coefficients) {
    Id sum = c(coefficients[0]);
    for (double k : coefficients.subspan(1)) sum = add(mul(sum, x), c(k));
    return sum;
  }
  // 2^n for an integer n within the exponents of normal numbers.
  Id power_of_two(Id n) {
    const Id bits = g.binary(Op::Shl, add(n, i(bias)), i(mantissa_bits));
    return g.add(Op::Bitcast, real, {bits});
  }
};

/// Converts another dtype to f32 with rounding to odd: the last bit is 1 if bits are lost, so that
/// rounding once more to a small float is correct.
Id to_odd_f32(Graph& g, Id x);

}  // namespace plugrad::codegen
