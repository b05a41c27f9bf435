// Elementwise operations. Small dtypes are computed in wider ones, in which every result is exact
// or rounded alike: ONNX Runtime has few operators of 8 and 16 bits.
#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.h"
#include "onnx/export/translation.h"

namespace plugrad::onnx {
namespace {

std::string_view name_in_onnx(Op op) {
  switch (op) {
    case Op::Add:
      return "Add";
    case Op::Sub:
      return "Sub";
    case Op::Mul:
      return "Mul";
    case Op::Max:
      return "Max";
    case Op::FDiv:
      return "Div";
    case Op::CmpLt:
      return "Less";
    case Op::CmpEq:
    case Op::CmpNe:
      return "Equal";
    case Op::And:
      return "And";
    case Op::Or:
      return "Or";
    case Op::Xor:
      return "Xor";
    case Op::Neg:
      return "Neg";
    case Op::Recip:
      return "Reciprocal";
    case Op::Sqrt:
      return "Sqrt";
    case Op::Sin:
      return "Sin";
    case Op::Exp:
      return "Exp";
    case Op::Log:
      return "Log";
    case Op::Pow:
      return "Pow";
    case Op::Cos:
      return "Cos";
    case Op::Tan:
      return "Tan";
    default:
      return "";
  }
}

}  // namespace

DType wide(DType dtype) {
  if (is_small_float(dtype)) return DType::F32;
  if (is_float(dtype) || dtype == DType::Index || dtype == DType::U64) return dtype;
  if (size_of(dtype) < 4) return DType::I32;
  return dtype == DType::U32 ? DType::I64 : dtype;
}

std::string Translation::where(const std::string& condition, const std::string& yes,
                               const std::string& no, DType dtype) {
  DType held = wide(dtype);
  if (dtype == DType::U64) held = DType::I64;  // the same bits
  return cast(where(condition, cast(yes, dtype, held), cast(no, dtype, held)), held, dtype);
}

std::string Translation::elementwise(Id id) {
  const Op op = graph_[id].op;
  const std::vector<Id>& of = operands_.at(id);
  const DType own = dtype(id);
  switch (op) {
    case Op::Cast:
      return in(of[0], own);
    case Op::Bitcast:
      return bitcast(id);
    case Op::Where:
      return where(name(of[0]), name(of[1]), name(of[2]), own);
    case Op::IDiv:
    case Op::Mod:
    case Op::FloorDiv:
    case Op::FloorMod:
      return division(id);
    case Op::Shl:
    case Op::Shr:
      return shift(id);
    default:
      break;
  }
  if (of.size() == 1) return unary(id);
  const DType from = dtype(of[0]), computed = wide(from);
  if (op == Op::Fma) {
    // Products of f32 are exact in f64.
    const DType exact = computed == DType::F32 ? DType::F64 : computed;
    const std::string product = to_.node("Mul", {in(of[0], exact), in(of[1], exact)});
    return cast(to_.node("Add", {product, in(of[2], exact)}), exact, own);
  }
  if (op == Op::And || op == Op::Or || op == Op::Xor) {
    const std::string prefix = own == DType::Bool ? "" : "Bitwise";
    return to_.node(prefix + std::string(name_in_onnx(op)), {name(of[0]), name(of[1])});
  }
  if (op == Op::Sub && is_float(computed) && is_constant_.at(of[1]) &&
      graph_[of[1]].op != Op::Const) {
    const std::string constant = to_.node("Neg", {in(of[1], computed)});
    return cast(to_.node("Add", {in(of[0], computed), constant}), computed, own);
  }
  const bool compares = op == Op::CmpLt || op == Op::CmpEq || op == Op::CmpNe;
  Id first = of[0], second = of[1];
  // ONNX Runtime joins second operands that are constant with a Conv.
  if (is_commutative(op) && is_constant_.at(first)) std::swap(first, second);
  std::string y = to_.node(name_in_onnx(op), {in(first, computed), in(second, computed)});
  if (op == Op::CmpNe) y = to_.node("Not", {y});
  return compares ? y : cast(y, computed, own);
}

std::string Translation::unary(Id id) {
  const Op op = graph_[id].op;
  const Id source = operands_.at(id)[0];
  const DType own = dtype(id), computed = wide(own);
  const std::string x = in(source, computed);
  const auto done = [&](const std::string& y) { return cast(y, computed, own); };
  switch (op) {
    case Op::Neg:
      if (is_unsigned(computed)) return to_.node("Sub", {number(computed, 0), x});
      return done(to_.node("Neg", {x}));
    case Op::Trunc:
      return done(where(to_.node("Less", {x, number(computed, 0)}), to_.node("Ceil", {x}),
                        to_.node("Floor", {x})));
    case Op::Exp2:
      return done(to_.node("Pow", {number(computed, 2), x}));
    case Op::Log2:
      return done(to_.node("Mul", {to_.node("Log", {x}), number(computed, 1 / std::numbers::ln2)}));
    case Op::Cos:
    case Op::Tan: {
      // ONNX Runtime has these for f32 only; half the angle is exact.
      if (computed != DType::F64) return done(to_.node(name_in_onnx(op), {x}));
      const std::string half = to_.node("Sin", {to_.node("Mul", {x, number(computed, 0.5)})});
      const std::string twice =
          to_.node("Mul", {to_.node("Mul", {half, half}), number(computed, 2)});
      const std::string cosine = to_.node("Sub", {number(computed, 1), twice});
      return done(op == Op::Cos ? cosine : to_.node("Div", {to_.node("Sin", {x}), cosine}));
    }
    default: {
      const std::string_view known = name_in_onnx(op);
      ensure(!known.empty(), "[onnx] no translation of {}", op_info(op).name);
      return done(to_.node(known, {x}));
    }
  }
}

// ONNX divides by neither 0 nor, where the result overflows, -1.
std::string Translation::division(Id id) {
  const Op op = graph_[id].op;
  const std::vector<Id>& of = operands_.at(id);
  const DType own = dtype(id), computed = wide(own);
  const std::string x = in(of[0], computed), y = in(of[1], computed);
  if (is_float(own)) return cast(to_.node("Mod", {x, y}, {{"fmod", 1}}), computed, own);
  const std::string zero = number(computed, 0), one = number(computed, 1);
  const bool is_quotient = op == Op::IDiv || op == Op::FloorDiv;
  const bool has_sign = !is_unsigned(own);
  const std::string by_zero = to_.node("Equal", {y, zero});
  std::string divisor = where(by_zero, one, y, computed);
  std::string by_minus_one;
  if (has_sign) {
    by_minus_one = to_.node("Equal", {y, number(computed, -1)});
    divisor = where(by_minus_one, one, divisor, computed);
  }
  const std::string rest = to_.node("Mod", {x, divisor}, {{"fmod", 1}});
  std::string result = is_quotient ? to_.node("Div", {x, divisor}) : rest;
  if (has_sign && (op == Op::FloorDiv || op == Op::FloorMod)) {
    const std::string is_below = to_.node(
        "And", {to_.node("Not", {to_.node("Equal", {rest, zero})}),
                to_.node("Xor", {to_.node("Less", {rest, zero}), to_.node("Less", {y, zero})})});
    result = is_quotient ? to_.node("Sub", {result, cast(is_below, DType::Bool, computed)})
                         : to_.node("Add", {result, where(is_below, y, zero)});
  }
  if (has_sign)
    result = where(by_minus_one, is_quotient ? to_.node("Neg", {x}) : zero, result, computed);
  return cast(where(by_zero, is_quotient ? zero : x, result, computed), computed, own);
}

// Values are widened to 64 bits; BitShift takes unsigned integers only.
std::string Translation::shift(Id id) {
  const std::vector<Id>& of = operands_.at(id);
  const DType own = dtype(id);
  const bool is_left = graph_[id].op == Op::Shl;
  const std::string x = in(of[0], DType::I64), count = in(of[1], DType::I64);
  const std::string zero = number(DType::I64, 0);
  const auto bits = static_cast<double>(own == DType::Index ? 64 : 8 * size_of(own));
  const std::string inside = to_.node("And", {to_.node("GreaterOrEqual", {count, zero}),
                                              to_.node("Less", {count, number(DType::I64, bits)})});
  const std::string by = cast(where(inside, count, zero), DType::I64, DType::U64);
  const auto shifted = [&](const std::string& value) {
    const std::string y = to_.node("BitShift", {cast(value, DType::I64, DType::U64), by},
                                   {{"direction", is_left ? "LEFT" : "RIGHT"}});
    return where(inside, cast(y, DType::U64, DType::I64), zero);
  };
  if (is_left || is_unsigned(own)) return cast(shifted(x), DType::I64, own);
  const std::string is_negative = to_.node("Less", {x, zero});
  const std::string y = shifted(where(is_negative, to_.node("BitwiseNot", {x}), x));
  return cast(where(is_negative, to_.node("BitwiseNot", {y}), y), DType::I64, own);
}

}  // namespace plugrad::onnx
