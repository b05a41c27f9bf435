// Rounded quotients and remainders.
#include "plugrad/functional.h"
#include "tensor/compute_dtype.h"
#include "tensor/elementwise/compositions.h"
#include "tensor/record.h"

namespace plugrad {

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

/// Operands of one dtype, f32 or f64.
Tensor real_fmod(const Tensor& a, const Tensor& b) {
  Recorder r("fmod");
  std::vector<Id> nodes = {r.use(a), r.use(b)};
  r.match(nodes, Takes::Floats);
  return r.done(r.graph().binary(Op::Mod, nodes[0], nodes[1]));
}

/// The sign of b, also for a remainder of 0: computes with the signs of both turned so that b is
/// positive, where -0 + 0 is +0.
Tensor real_mod(const Tensor& a, const Tensor& b) {
  const Tensor is_negative = b < 0.0, remainder = real_fmod(a, b);
  const Tensor turned = where(is_negative, -remainder, remainder) + 0.0;
  const Tensor size = where(turned < 0.0, turned + where(is_negative, -b, b), turned);
  return where(is_negative, -size, size);
}

/// The integer nearest to (a - mod) / b: the rounding of a / b could give one too many.
Tensor real_floor_div(const Tensor& x, const Tensor& y) {
  const Tensor a = x.detach(), b = y.detach(), ratio = a / b;
  const Tensor q = ((a - real_mod(a, b)) / b).round();
  const Tensor zero = ratio * 0.0;  // with the sign of the quotient
  const Tensor floor = where(q == 0.0, zero, q);
  const Tensor is_below = (a != 0.0) & ((a < 0.0) != (b < 0.0));
  const Tensor of_infinity = where(is_below, -1.0, zero);
  return where(b.isinf() & a.isfinite(), of_infinity,
               where((b == 0.0) | ratio.isinf(), ratio, floor));
}

template <class Function>
Tensor on_reals(std::string_view name, const Tensor& a, const Tensor& b, Function function) {
  Recorder r(name);
  std::vector<Id> nodes = {r.use(a), r.use(b)};
  r.match(nodes, Takes::Floats);
  const Tensor x = r.done(nodes[0]), y = r.done(nodes[1]);
  return tensor::in_compute_dtype(
      x, [&](const Tensor& promoted) { return function(promoted, y.cast(promoted.dtype())); });
}

}  // namespace

Tensor operator%(const Tensor& a, const Tensor& b) {
  const tensor::NamedFunction named("mod");
  if (!takes_reals(a, b)) return integer_op("mod", Op::FloorMod, a, b);
  return on_reals("mod", a, b, real_mod);
}

Tensor Tensor::mod(const Tensor& other) const {
  return *this % other;
}

Tensor Tensor::fmod(const Tensor& other) const {
  const tensor::NamedFunction named("fmod");
  if (!takes_reals(*this, other)) return integer_op("fmod", Op::Mod, *this, other);
  return on_reals("fmod", *this, other, real_fmod);
}

Tensor Tensor::floor_div(const Tensor& other) const {
  const tensor::NamedFunction named("floor_div");
  if (!takes_reals(*this, other)) return integer_op("floor_div", Op::FloorDiv, *this, other);
  return on_reals("floor_div", *this, other, [](const Tensor& a, const Tensor& b) {
    return tensor::constant_in(a + b, real_floor_div(a, b));
  });
}

Tensor Tensor::trunc_div(const Tensor& other) const {
  const tensor::NamedFunction named("trunc_div");
  if (!takes_reals(*this, other)) return integer_op("trunc_div", Op::IDiv, *this, other);
  return on_reals("trunc_div", *this, other, [](const Tensor& a, const Tensor& b) {
    return tensor::constant_in(a + b, (a / b).trunc());
  });
}

Tensor Tensor::div(const Tensor& other, Rounding rounding) const {
  if (rounding == Rounding::Floor) return floor_div(other);
  return rounding == Rounding::Trunc ? trunc_div(other) : *this / other;
}

}  // namespace plugrad
