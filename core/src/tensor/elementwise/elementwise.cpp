// Elementwise functions of one op, and selections between operands.
#include <cmath>

#include "plugrad/functional.h"
#include "tensor/elementwise/multiply_add.h"
#include "tensor/record.h"

namespace plugrad {

using tensor::Recorder;
using tensor::Takes;

namespace {

Tensor unary(std::string_view function, Op op, const Tensor& x, Takes takes) {
  Recorder r(function);
  std::vector<Id> nodes = {r.use(x)};
  r.match_dtypes(nodes, takes);
  return r.done(r.graph().unary(op, nodes[0]));
}

Tensor binary(std::string_view function, Op op, const Tensor& a, const Tensor& b, Takes takes) {
  Recorder r(function);
  std::vector<Id> nodes = {r.use(a), r.use(b)};
  r.match(nodes, takes);
  return r.done(r.graph().binary(op, nodes[0], nodes[1]));
}

/// Like binary, but with `logic` instead of `op` for bool operands.
Tensor arithmetic(std::string_view function, Op op, Op logic, const Tensor& a, const Tensor& b) {
  const bool both_bool =
      a.defined() && b.defined() && a.dtype() == DType::Bool && b.dtype() == DType::Bool;
  return binary(function, both_bool ? logic : op, a, b, Takes::Any);
}

Tensor shift(std::string_view function, Op op, const Tensor& a, const Tensor& b) {
  Recorder r(function);
  std::vector<Id> nodes = {r.use(a), r.use(b)};
  const DType dtype = strong(r.dtype(nodes[0]));
  require_type(is_integer(dtype) && is_integer(strong(r.dtype(nodes[1]))),
               "[{}] takes integers, not {} and {}; cast them", function, name_of(a.dtype()),
               name_of(b.dtype()));
  for (Id& node : nodes) node = r.cast(node, dtype);
  r.match_shapes(nodes);
  return r.done(r.graph().binary(op, nodes[0], nodes[1]));
}

/// Whether `other` is u64 and x a signed integer, unless x is a literal of 0 or more. No dtype
/// holds both.
bool is_signed_beside_u64(const Tensor& x, const Tensor& other) {
  if (other.dtype() != DType::U64 || !is_integer(x.dtype()) || is_unsigned(x.dtype())) return false;
  Recorder r("compare");
  const Id node = r.use(x);
  const Graph& g = r.graph();
  return g[node].op != Op::Const || const_int(g, node) < 0;
}

Tensor equal(std::string_view function, const Tensor& a, const Tensor& b) {
  const tensor::NamedFunction named(function);
  if (is_signed_beside_u64(b, a)) return equal(function, b, a);
  if (!is_signed_beside_u64(a, b)) return binary(function, Op::CmpEq, a, b, Takes::Any);
  return (a >= 0) & (a.cast(DType::U64) == b);
}

Tensor less(std::string_view function, const Tensor& a, const Tensor& b) {
  const tensor::NamedFunction named(function);
  if (is_signed_beside_u64(a, b)) return (a < 0) | (a.cast(DType::U64) < b);
  if (is_signed_beside_u64(b, a)) return (b > 0) & (a < b.cast(DType::U64));
  return binary(function, Op::CmpLt, a, b, Takes::Any);
}

}  // namespace

Tensor operator+(const Tensor& a, const Tensor& b) {
  return arithmetic("add", Op::Add, Op::Or, a, b);
}
Tensor operator*(const Tensor& a, const Tensor& b) {
  return arithmetic("mul", Op::Mul, Op::And, a, b);
}
Tensor operator-(const Tensor& a, const Tensor& b) {
  return binary("sub", Op::Sub, a, b, Takes::Numbers);
}
Tensor operator/(const Tensor& a, const Tensor& b) {
  return binary("div", Op::FDiv, a, b, Takes::Floats);
}
Tensor operator&(const Tensor& a, const Tensor& b) {
  return binary("and", Op::And, a, b, Takes::Bits);
}
Tensor operator|(const Tensor& a, const Tensor& b) {
  return binary("or", Op::Or, a, b, Takes::Bits);
}
Tensor operator^(const Tensor& a, const Tensor& b) {
  return binary("xor", Op::Xor, a, b, Takes::Bits);
}
Tensor operator<<(const Tensor& a, const Tensor& b) {
  return shift("shl", Op::Shl, a, b);
}
Tensor operator>>(const Tensor& a, const Tensor& b) {
  return shift("shr", Op::Shr, a, b);
}
Tensor operator==(const Tensor& a, const Tensor& b) {
  return equal("eq", a, b);
}
Tensor operator!=(const Tensor& a, const Tensor& b) {
  if (is_signed_beside_u64(a, b) || is_signed_beside_u64(b, a)) return !equal("ne", a, b);
  return binary("ne", Op::CmpNe, a, b, Takes::Any);
}
Tensor operator<(const Tensor& a, const Tensor& b) {
  return less("lt", a, b);
}
Tensor operator>(const Tensor& a, const Tensor& b) {
  return less("gt", b, a);
}
// Not !(b < a): both comparisons are false for NaN.
Tensor operator<=(const Tensor& a, const Tensor& b) {
  const tensor::NamedFunction named("le");
  return (a < b) | (a == b);
}
Tensor operator>=(const Tensor& a, const Tensor& b) {
  const tensor::NamedFunction named("ge");
  return (b < a) | (a == b);
}

Tensor Tensor::maximum(const Tensor& other) const {
  const bool both_bool = dtype() == DType::Bool && other.dtype() == DType::Bool;
  return binary("maximum", both_bool ? Op::Or : Op::Max, *this, other, Takes::Any);
}

Tensor Tensor::minimum(const Tensor& other) const {
  Recorder r("minimum");
  std::vector<Id> nodes = {r.use(*this), r.use(other)};
  r.match(nodes, Takes::Any);
  Graph& g = r.graph();
  const DType common = r.dtype(nodes[0]);
  if (common == DType::Bool) return r.done(g.binary(Op::And, nodes[0], nodes[1]));
  // -x reverses the order of floats; ~x that of integers, without overflow.
  const auto reversed = [&](Id x) {
    return is_float(common) ? g.unary(Op::Neg, x)
                            : g.binary(Op::Xor, x, g.constant(common, int64_t{-1}));
  };
  return r.done(reversed(g.binary(Op::Max, reversed(nodes[0]), reversed(nodes[1]))));
}

Tensor where(const Tensor& condition, const Tensor& yes, const Tensor& no) {
  Recorder r("where");
  std::vector<Id> nodes = {r.use(condition), r.use(yes), r.use(no)};
  require_type(r.dtype(nodes[0]) == DType::Bool,
               "[{}] the condition is {}, not bool; compare it first", r.function(),
               name_of(condition.dtype()));
  std::vector<Id> arms = {nodes[1], nodes[2]};
  r.match_dtypes(arms, Takes::Any);
  nodes = {nodes[0], arms[0], arms[1]};
  r.match_shapes(nodes);
  return r.done(r.graph().where(nodes[0], nodes[1], nodes[2]));
}

Tensor tensor::multiply_add(const Tensor& x, const Tensor& y, const Tensor& z) {
  Recorder r("multiply_add");
  std::vector<Id> nodes = {r.use(x), r.use(y), r.use(z)};
  r.match(nodes, Takes::Floats);
  return r.done(r.graph().add(Op::Fma, r.dtype(nodes[0]), nodes));
}

Tensor Tensor::where(const Tensor& yes, const Tensor& no) const {
  return plugrad::where(*this, yes, no);
}
Tensor Tensor::masked_fill(const Tensor& mask, const Tensor& value) const {
  const tensor::NamedFunction named("masked_fill");
  return mask.where(value, *this);
}
// Starts at the nearer end, so that the weights 0 and 1 give the exact ends.
Tensor Tensor::lerp(const Tensor& end, const Tensor& weight) const {
  const tensor::NamedFunction named("lerp");
  const Tensor way = end - *this;
  return plugrad::where(weight < 0.5, *this + weight * way, end - way * (1.0 - weight));
}

Tensor Tensor::operator-() const {
  return unary("neg", Op::Neg, *this, Takes::Numbers);
}
Tensor Tensor::operator~() const {
  const tensor::NamedFunction named("invert");
  return dtype() == DType::Bool ? *this ^ Tensor(true) : *this ^ Tensor(-1);
}
Tensor Tensor::operator!() const {
  return logical_not();
}
Tensor Tensor::logical_not() const {
  return dtype() == DType::Bool ? ~*this : *this == 0;
}

Tensor Tensor::reciprocal() const {
  return unary("reciprocal", Op::Recip, *this, Takes::Floats);
}
Tensor Tensor::sqrt() const {
  return unary("sqrt", Op::Sqrt, *this, Takes::Floats);
}
Tensor Tensor::rsqrt() const {
  return sqrt().reciprocal();
}
Tensor Tensor::square() const {
  return *this * *this;
}
Tensor Tensor::exp2() const {
  return unary("exp2", Op::Exp2, *this, Takes::Floats);
}
Tensor Tensor::log2() const {
  return unary("log2", Op::Log2, *this, Takes::Floats);
}
Tensor Tensor::sin() const {
  return unary("sin", Op::Sin, *this, Takes::Floats);
}
Tensor Tensor::trunc() const {
  return is_float(dtype()) ? unary("trunc", Op::Trunc, *this, Takes::Numbers)
                           : tensor::own_handle(*this);
}

Tensor Tensor::floor() const {
  if (!is_float(dtype())) return tensor::own_handle(*this);
  const Tensor t = trunc();
  return plugrad::where(*this < t, t - 1.0, t);
}

Tensor Tensor::ceil() const {
  if (!is_float(dtype())) return tensor::own_handle(*this);
  const Tensor t = trunc();
  return plugrad::where(*this > t, t + 1.0, t);
}

// Compares the fraction, so that the sign of a zero is kept.
Tensor Tensor::round() const {
  if (!is_float(dtype())) return tensor::own_handle(*this);
  const Tensor t = trunc(), fraction = (*this - t).abs(), odd = (t * 0.5).trunc() * 2.0 != t;
  const Tensor away = plugrad::where(*this < 0, t - 1.0, t + 1.0);
  return plugrad::where((fraction > 0.5) | ((fraction == 0.5) & odd), away, t);
}

Tensor Tensor::isnan() const {
  return *this != *this;
}
Tensor Tensor::isinf() const {
  return is_float(dtype()) ? abs() == INFINITY : *this != *this;
}
Tensor Tensor::isposinf() const {
  return is_float(dtype()) ? *this == INFINITY : *this != *this;
}
Tensor Tensor::isneginf() const {
  return is_float(dtype()) ? *this == -INFINITY : *this != *this;
}
Tensor Tensor::isfinite() const {
  return is_float(dtype()) ? abs() < INFINITY : *this == *this;
}

// Selects 0 separately, so that |-0| is +0 and the gradient at 0 is 0.
Tensor Tensor::abs() const {
  if (dtype() == DType::Bool || is_unsigned(dtype())) return tensor::own_handle(*this);
  return plugrad::where(*this == 0, 0, plugrad::where(*this < 0, -*this, *this));
}

Tensor Tensor::sign() const {
  if (dtype() == DType::Bool) return tensor::own_handle(*this);
  if (is_unsigned(dtype())) return (*this != 0).cast(dtype());
  const Tensor negative = plugrad::where(*this < 0, -1, *this * 0);  // x * 0 keeps NaN
  return plugrad::where(*this > 0, 1, negative);
}

}  // namespace plugrad
