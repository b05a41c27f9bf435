// Elementwise functions that consist of others record their nodes one after the other, without a
// tensor for each step: a step costs a tenth of a call of a tensor function.
#pragma once

#include <cmath>
#include <vector>

#include "tensor/compute_dtype.h"
#include "tensor/record.h"

namespace plugrad::tensor {

/// A node of a formula, or a number that takes the dtype of the operand beside it. Operands have one
/// dtype and shapes that need no broadcasting.
class Formula {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): numbers are operands
  Formula(double number) : number_(number) {}
  Formula(Graph& graph, Id node) : graph_(&graph), node_(node) {}

  Id node() const { return node_; }
  DType dtype() const { return (*graph_)[node_].dtype; }
  bool is_f64() const { return dtype() == DType::F64; }
  /// A number in the formula's dtype.
  Formula constant(double number) const { return {*graph_, Formula(number).node_beside(*this)}; }

  Formula operator-() const { return unary(Op::Neg); }
  Formula operator!() const {
    return {*graph_, graph_->binary(Op::Xor, node_, graph_->constant(DType::Bool, int64_t{1}))};
  }
  Formula exp() const { return unary(Op::Exp); }
  Formula log() const { return unary(Op::Log); }
  Formula sqrt() const { return unary(Op::Sqrt); }
  Formula reciprocal() const { return unary(Op::Recip); }
  Formula trunc() const { return unary(Op::Trunc); }
  Formula detach() const { return unary(Op::Detach); }
  /// |x|, +0 for -0, with gradient 0 at 0.
  Formula abs() const;
  /// To the nearest integer, ties to even.
  Formula round() const;
  Formula isinf() const;
  Formula isfinite() const;

  static Formula binary(Op op, const Formula& a, const Formula& b) {
    Graph& graph = a.graph_ != nullptr ? *a.graph_ : *b.graph_;
    return {graph, graph.binary(op, a.node_beside(b), b.node_beside(a))};
  }
  static Formula choice(const Formula& condition, const Formula& yes, const Formula& no) {
    Graph& graph = *condition.graph_;
    return {graph, graph.where(condition.node_, yes.node_beside(no), no.node_beside(yes))};
  }
  Formula unary(Op op) const { return {*graph_, graph_->unary(op, node_)}; }
  Graph& graph() const { return *graph_; }

 private:
  Id node_beside(const Formula& other) const {
    if (graph_ != nullptr) return node_;
    const DType dtype = other.dtype();
    return is_float(dtype) ? other.graph_->constant(dtype, number_)
                           : other.graph_->constant(dtype, static_cast<int64_t>(number_));
  }

  Graph* graph_ = nullptr;
  Id node_ = kNoId;
  double number_ = 0;
};

inline Formula operator+(const Formula& a, const Formula& b) {
  return Formula::binary(Op::Add, a, b);
}
inline Formula operator-(const Formula& a, const Formula& b) {
  return Formula::binary(Op::Sub, a, b);
}
inline Formula operator*(const Formula& a, const Formula& b) {
  return Formula::binary(Op::Mul, a, b);
}
inline Formula operator/(const Formula& a, const Formula& b) {
  return Formula::binary(Op::FDiv, a, b);
}
inline Formula operator&(const Formula& a, const Formula& b) {
  return Formula::binary(Op::And, a, b);
}
inline Formula operator|(const Formula& a, const Formula& b) {
  return Formula::binary(Op::Or, a, b);
}
inline Formula operator<(const Formula& a, const Formula& b) {
  return Formula::binary(Op::CmpLt, a, b);
}
inline Formula operator>(const Formula& a, const Formula& b) {
  return b < a;
}
inline Formula operator==(const Formula& a, const Formula& b) {
  return Formula::binary(Op::CmpEq, a, b);
}
inline Formula operator!=(const Formula& a, const Formula& b) {
  return Formula::binary(Op::CmpNe, a, b);
}
// Not !(b < a): both comparisons are false for NaN.
inline Formula operator<=(const Formula& a, const Formula& b) {
  return (a < b) | (a == b);
}
inline Formula operator>=(const Formula& a, const Formula& b) {
  return b <= a;
}
inline Formula where(const Formula& condition, const Formula& yes, const Formula& no) {
  return Formula::choice(condition, yes, no);
}
inline Formula maximum(const Formula& a, const Formula& b) {
  return Formula::binary(Op::Max, a, b);
}

// Selects 0 separately, so that |-0| is +0 and the gradient at 0 is 0.
inline Formula Formula::abs() const {
  return where(*this == 0.0, 0.0, where(*this < 0.0, -*this, *this));
}
// Compares the fraction, so that the sign of a zero is kept.
inline Formula Formula::round() const {
  const Formula t = trunc(), fraction = (*this - t).abs(), odd = (t * 0.5).trunc() * 2.0 != t;
  const Formula away = where(*this < 0.0, t - 1.0, t + 1.0);
  return where((fraction > 0.5) | ((fraction == 0.5) & odd), away, t);
}
inline Formula Formula::isinf() const {
  return abs() == constant(INFINITY);
}
inline Formula Formula::isfinite() const {
  return abs() < constant(INFINITY);
}

/// The function of x in x's own dtype; in that of its values if x is a literal.
template <class Function>
Tensor formula_of(std::string_view name, const Tensor& of, const Function& function) {
  Recorder r(name);
  std::vector<Id> nodes = {r.use(of)};
  r.match_dtypes(nodes, Takes::Any);
  return r.done(function(Formula(r.graph(), nodes[0])).node());
}

/// The function of x in its compute dtype; cast back if x is a float.
template <class Function>
Tensor real_formula_of(std::string_view name, const Tensor& of, const Function& function) {
  Recorder r(name);
  std::vector<Id> nodes = {r.use(of)};
  r.match_dtypes(nodes, Takes::Floats);
  const DType own = r.dtype(nodes[0]);
  const Formula x(r.graph(), r.cast(nodes[0], compute_dtype(own)));
  return r.done(r.cast(function(x).node(), own));
}

/// The function of two operands, brought to one shape and their common float dtype, in its compute
/// dtype.
template <class Function>
Tensor real_formula_of(std::string_view name, const Tensor& a, const Tensor& b,
                       const Function& function) {
  Recorder r(name);
  std::vector<Id> nodes = {r.use(a), r.use(b)};
  r.match(nodes, Takes::Floats);
  const DType own = r.dtype(nodes[0]), in = compute_dtype(own);
  const Formula x(r.graph(), r.cast(nodes[0], in)), y(r.graph(), r.cast(nodes[1], in));
  return r.done(r.cast(function(x, y).node(), own));
}

}  // namespace plugrad::tensor
