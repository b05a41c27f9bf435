// Elementwise operators of one, two and many operands.
#include <cmath>
#include <optional>

#include "base/check.h"
#include "onnx/ops/tables.h"

namespace plugrad::onnx {
namespace {

template <auto function>
Values combined(Call& call) {
  Tensor result = call[0];
  for (size_t i = 1; i < call.input_count(); ++i) result = function(result, call[i]);
  return {result};
}

// Operator sets 1 to 6 broadcast the second operand only, from an axis that they give.
Tensor second_operand(Call& call) {
  const Tensor x = call[0], y = call[1];
  if (call.opset() >= 7 || call.integer("broadcast", 0) == 0 || !call.attribute("axis")) return y;
  const int64_t axis = call.axis_of(x, 0);
  Shape shape = y.shape();
  shape.resize(static_cast<size_t>(std::max<int64_t>(x.ndim() - axis, y.ndim())), 1);
  return y.reshape(shape);
}

Values add_(Call& call) {
  return {call[0] + second_operand(call)};
}
Values sub(Call& call) {
  return {call[0] - second_operand(call)};
}
Values mul(Call& call) {
  return {call[0] * second_operand(call)};
}
// Integers round towards zero.
Values div(Call& call) {
  const Tensor x = call[0], y = second_operand(call);
  return {is_float(x.dtype()) ? x / y : x.trunc_div(y)};
}
Values mod(Call& call) {
  return {call.integer("fmod", 0) != 0 ? call[0].fmod(call[1]) : call[0].mod(call[1])};
}

// An exponent of one element that the host knows, which pow computes exactly and fast.
std::optional<double> known_exponent(Call& call, const Tensor& base) {
  const tensor::HostValues* const known = call.value(1).known();
  if (!known || known->bits.size() != 1 || std::ssize(known->shape) > base.ndim()) return {};
  return call.numbers_input(1)[0];
}

// An integer to the power of a float. Whole exponents give exact integers. The others are rounded
// towards zero, once roots of whole numbers that are a little less than whole are lifted.
Tensor integer_to_real_power(const Tensor& base, const Tensor& exponent) {
  const Tensor root = base.cast(DType::F64).pow(exponent.cast(DType::F64));
  const Tensor truncated = (root + root * 0x1p-40).cast(base.dtype());
  const Tensor whole = exponent.clamp(-0x1p30, 0x1p30).cast(DType::I32);
  return (exponent == exponent.trunc()).where(base.pow(whole).cast(base.dtype()), truncated);
}

// The result has the base's dtype, whatever the exponent's is.
Values pow_(Call& call) {
  const Tensor base = call[0];
  const DType dtype = base.dtype();
  Tensor exponent = second_operand(call);
  const auto number = known_exponent(call, base);
  if (is_float(dtype))
    exponent = number ? Tensor(*number) : exponent.cast(dtype);
  else if (number && *number >= 0 && *number < 0x1p63 && std::trunc(*number) == *number)
    exponent = static_cast<int64_t>(*number);
  if (is_float(exponent.dtype()) && !is_float(dtype))
    return {integer_to_real_power(base, exponent)};
  return {base.pow(exponent).cast(dtype)};
}

// Up to operator set 6 the slopes are those of channels.
Values prelu(Call& call) {
  const Tensor x = call[0];
  Tensor slope = call[1];
  if (call.opset() < 7 && slope.ndim() == 1 && x.ndim() > 2) {
    Shape channels(static_cast<size_t>(x.ndim() - 1), 1);
    channels[0] = slope.numel();
    slope = slope.reshape(channels);
  }
  return {(x < 0).where(x * slope, x)};
}

Values where_(Call& call) {
  return {call[0].where(call[1], call[2])};
}

Values clip(Call& call) {
  const Tensor x = call[0];
  Tensor low, high;
  if (call.opset() < 11) {
    if (call.attribute("min")) low = Tensor(call.number("min", 0)).cast(x.dtype());
    if (call.attribute("max")) high = Tensor(call.number("max", 0)).cast(x.dtype());
  } else {
    low = call.optional(1);
    high = call.optional(2);
    for (const Tensor& bound : {low, high})
      if (bound.defined() && bound.numel() != 1)
        call.wrong(fmt::format("a bound has the shape {}, it must be one number",
                               to_string(bound.shape())));
  }
  Tensor result = x;
  if (low.defined()) result = result.maximum(low);
  if (high.defined()) result = result.minimum(high);
  return {result};
}

Values is_inf(Call& call) {
  const Tensor x = call[0];
  const bool negative = call.integer("detect_negative", 1) != 0;
  const bool positive = call.integer("detect_positive", 1) != 0;
  if (negative && positive) return {x.isinf()};
  if (negative) return {x.isneginf()};
  return {positive ? x.isposinf() : x.isposinf() & Tensor(false)};
}

Values bit_shift(Call& call) {
  return {call.text("direction", "") == "LEFT" ? call[0] << call[1] : call[0] >> call[1]};
}

Values equal(Call& call) {
  return {call[0] == second_operand(call)};
}
Values greater(Call& call) {
  return {call[0] > second_operand(call)};
}
Values greater_or_equal(Call& call) {
  return {call[0] >= call[1]};
}
Values less(Call& call) {
  return {call[0] < second_operand(call)};
}
Values less_or_equal(Call& call) {
  return {call[0] <= call[1]};
}
Values and_(Call& call) {
  return {call[0] & second_operand(call)};
}
Values or_(Call& call) {
  return {call[0] | second_operand(call)};
}
Values xor_(Call& call) {
  return {call[0] ^ second_operand(call)};
}
Values not_(Call& call) {
  return {call[0].logical_not()};
}
Values bitwise_not(Call& call) {
  return {~call[0]};
}
Values neg(Call& call) {
  return {-call[0]};
}

Tensor sum_of(const Tensor& a, const Tensor& b) {
  return a + b;
}
Tensor max_of(const Tensor& a, const Tensor& b) {
  return a.maximum(b);
}
Tensor min_of(const Tensor& a, const Tensor& b) {
  return a.minimum(b);
}
Values mean_of_inputs(Call& call) {
  return {combined<sum_of>(call)[0].tensor() / static_cast<double>(call.input_count())};
}

constexpr OperatorRow kElementwiseRows[] = {
    {"Abs", unary<&Tensor::abs>, kVariableSizes},
    {"Acos", unary<&Tensor::acos>, kVariableSizes},
    {"Acosh", unary<&Tensor::acosh>, kVariableSizes},
    {"Add", add_, kVariableSizes},
    {"And", and_, kVariableSizes},
    {"Asin", unary<&Tensor::asin>, kVariableSizes},
    {"Asinh", unary<&Tensor::asinh>, kVariableSizes},
    {"Atan", unary<&Tensor::atan>, kVariableSizes},
    {"Atanh", unary<&Tensor::atanh>, kVariableSizes},
    {"BitShift", bit_shift, kVariableSizes},
    {"BitwiseAnd", and_, kVariableSizes},
    {"BitwiseNot", bitwise_not, kVariableSizes},
    {"BitwiseOr", or_, kVariableSizes},
    {"BitwiseXor", xor_, kVariableSizes},
    {"Ceil", unary<&Tensor::ceil>, kVariableSizes},
    {"Clip", clip, kVariableSizes},
    {"Cos", unary<&Tensor::cos>, kVariableSizes},
    {"Cosh", unary<&Tensor::cosh>, kVariableSizes},
    {"Div", div, kVariableSizes},
    {"Equal", equal, kVariableSizes},
    {"Erf", unary<&Tensor::erf>, kVariableSizes},
    {"Exp", unary<&Tensor::exp>, kVariableSizes},
    {"Floor", unary<&Tensor::floor>, kVariableSizes},
    {"Greater", greater, kVariableSizes},
    {"GreaterOrEqual", greater_or_equal, kVariableSizes},
    {"IsInf", is_inf, kVariableSizes},
    {"IsNaN", unary<&Tensor::isnan>, kVariableSizes},
    {"Less", less, kVariableSizes},
    {"LessOrEqual", less_or_equal, kVariableSizes},
    {"Log", unary<&Tensor::log>, kVariableSizes},
    {"Max", combined<max_of>, kVariableSizes},
    {"Mean", mean_of_inputs, kVariableSizes},
    {"Min", combined<min_of>, kVariableSizes},
    {"Mod", mod, kVariableSizes},
    {"Mul", mul, kVariableSizes},
    {"Neg", neg, kVariableSizes},
    {"Not", not_, kVariableSizes},
    {"Or", or_, kVariableSizes},
    {"PRelu", prelu, kVariableSizes},
    {"Pow", pow_, kVariableSizes},
    {"Reciprocal", unary<&Tensor::reciprocal>, kVariableSizes},
    {"Round", unary<&Tensor::round>, kVariableSizes},
    {"Sign", unary<&Tensor::sign>, kVariableSizes},
    {"Sin", unary<&Tensor::sin>, kVariableSizes},
    {"Sinh", unary<&Tensor::sinh>, kVariableSizes},
    {"Sqrt", unary<&Tensor::sqrt>, kVariableSizes},
    {"Sub", sub, kVariableSizes},
    {"Sum", combined<sum_of>, kVariableSizes},
    {"Tan", unary<&Tensor::tan>, kVariableSizes},
    {"Tanh", unary<&Tensor::tanh>, kVariableSizes},
    {"Where", where_, kVariableSizes},
    {"Xor", xor_, kVariableSizes},
};

}  // namespace

std::span<const OperatorRow> elementwise_operators() {
  return kElementwiseRows;
}

}  // namespace plugrad::onnx
