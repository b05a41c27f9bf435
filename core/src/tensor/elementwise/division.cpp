// Rounded quotients and remainders.
#include "plugrad/functional.h"
#include "tensor/elementwise/compositions.h"

namespace plugrad {

using tensor::Formula;
using tensor::real_formula_of;
using tensor::Recorder;
using tensor::Takes;

namespace {

/// By the dtypes in the graph: a literal takes that of the other operand.
bool takes_reals(const Tensor& a, const Tensor& b) {
  Recorder r("mod");
  return is_float(promote(r.dtype(r.use(a)), r.dtype(r.use(b))));
}

Tensor integer_op(std::string_view function, Op op, const Tensor& a, const Tensor& b) {
  Recorder r(function);
  std::vector<Id> nodes = {r.use(a), r.use(b)};
  r.match(nodes, Takes::Numbers);
  return r.done(r.graph().binary(op, nodes[0], nodes[1]));
}

/// The sign of b, also for a remainder of 0: computes with the signs of both turned so that b is
/// positive, where -0 + 0 is +0.
Formula real_mod(const Formula& a, const Formula& b) {
  const Formula is_negative = b < 0.0, remainder = Formula::binary(Op::Mod, a, b);
  const Formula turned = where(is_negative, -remainder, remainder) + 0.0;
  const Formula size = where(turned < 0.0, turned + where(is_negative, -b, b), turned);
  return where(is_negative, -size, size);
}

/// The integer nearest to (a - mod) / b: the rounding of a / b could give one too many.
Formula real_floor_div(const Formula& x, const Formula& y) {
  const Formula a = x.detach(), b = y.detach(), ratio = a / b;
  const Formula q = ((a - real_mod(a, b)) / b).round();
  const Formula zero = ratio * 0.0;  // with the sign of the quotient
  const Formula floor = where(q == 0.0, zero, q);
  const Formula is_below = (a != 0.0) & ((a < 0.0) != (b < 0.0));
  const Formula of_infinity = where(is_below, -1.0, zero);
  return where(b.isinf() & a.isfinite(), of_infinity,
               where((b == 0.0) | ratio.isinf(), ratio, floor));
}

}  // namespace

Tensor operator%(const Tensor& a, const Tensor& b) {
  const tensor::NamedFunction named("mod");
  if (!takes_reals(a, b)) return integer_op("mod", Op::FloorMod, a, b);
  return real_formula_of("mod", a, b, real_mod);
}

Tensor Tensor::mod(const Tensor& other) const {
  return *this % other;
}

Tensor Tensor::fmod(const Tensor& other) const {
  const tensor::NamedFunction named("fmod");
  if (!takes_reals(*this, other)) return integer_op("fmod", Op::Mod, *this, other);
  return real_formula_of("fmod", *this, other, [](const Formula& a, const Formula& b) {
    return Formula::binary(Op::Mod, a, b);
  });
}

Tensor Tensor::floor_div(const Tensor& other) const {
  const tensor::NamedFunction named("floor_div");
  if (!takes_reals(*this, other)) return integer_op("floor_div", Op::FloorDiv, *this, other);
  return real_formula_of("floor_div", *this, other, [](const Formula& a, const Formula& b) {
    return tensor::constant_in(a + b, real_floor_div(a, b));
  });
}

Tensor Tensor::trunc_div(const Tensor& other) const {
  const tensor::NamedFunction named("trunc_div");
  if (!takes_reals(*this, other)) return integer_op("trunc_div", Op::IDiv, *this, other);
  return real_formula_of("trunc_div", *this, other, [](const Formula& a, const Formula& b) {
    return tensor::constant_in(a + b, (a / b).trunc());
  });
}

Tensor Tensor::div(const Tensor& other, Rounding rounding) const {
  if (rounding == Rounding::Floor) return floor_div(other);
  return rounding == Rounding::Trunc ? trunc_div(other) : *this / other;
}

}  // namespace plugrad
