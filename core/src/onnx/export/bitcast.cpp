// Bits of floats, and floats of bits, by exact arithmetic in f64: ONNX has no bitcast. All NaN have the
// same bits.
//   bits = (exponent << fraction bits) + fraction, and the highest bit for the sign
#include <cmath>
#include <limits>

#include "onnx/export/translation.h"

namespace plugrad::onnx {
namespace {

struct Layout {
  int fraction = 0, bias = 0;  // bits; what is added to an exponent
  double two_to(int power) const { return std::ldexp(1.0, power); }
  std::int64_t one() const { return std::int64_t{1} << fraction; }
  std::int64_t infinity() const { return (2 * std::int64_t{bias} + 1) << fraction; }
  std::int64_t nan() const { return infinity() + one() / 2; }
};

Layout layout_of(DType dtype) {
  switch (dtype) {
    case DType::F16:
      return {10, 15};
    case DType::BF16:
      return {7, 127};
    case DType::F32:
      return {23, 127};
    default:
      return {52, 1023};
  }
}

std::int64_t sign_of(DType dtype) {
  return std::int64_t{-1} << (8 * size_of(dtype) - 1);
}

}  // namespace

std::string Translation::bitcast(Id id) {
  const Id source = operands_.at(id)[0];
  const DType from = dtype(source), to = dtype(id);
  if (is_float(from) == is_float(to)) return in(source, to);
  return is_float(from) ? bits_of(source, to) : value_of(source, to);
}

std::string Translation::bits_of(Id value, DType dtype) {
  const Layout f = layout_of(this->dtype(value));
  const auto real = [&](double x) { return number(DType::F64, x); };
  const auto whole = [&](std::int64_t x) { return number(DType::I64, 0, x); };
  const std::string x = in(value, DType::F64), a = to_.node("Abs", {x}), zero = real(0);
  const std::string scaled = to_.node("Mul", {a, real(f.two_to(f.bias - 1))});
  const std::string subnormal =
      cast(to_.node("Mul", {scaled, real(f.two_to(f.fraction))}), DType::F64, DType::I64);
  // a = mantissa * 2^exponent, 1 <= mantissa < 2
  const std::string is_below = to_.node("Less", {a, real(1)});
  std::string mantissa = where(is_below, scaled, a);
  std::string exponent = where(is_below, real(1 - f.bias), zero);
  for (int k = (f.bias + 1) / 2; k > 0; k /= 2) {
    const std::string is_larger = to_.node("GreaterOrEqual", {mantissa, real(f.two_to(k))});
    mantissa = to_.node("Mul", {mantissa, where(is_larger, real(f.two_to(-k)), real(1))});
    exponent = to_.node("Add", {exponent, where(is_larger, real(k), zero)});
  }
  // The mantissa's 1 adds one to the exponent.
  const std::string biased =
      cast(to_.node("Add", {exponent, real(f.bias - 1)}), DType::F64, DType::I64);
  const std::string fraction =
      cast(to_.node("Mul", {mantissa, real(f.two_to(f.fraction))}), DType::F64, DType::I64);
  const std::string normal = to_.node("Add", {to_.node("Mul", {biased, whole(f.one())}), fraction});
  const std::string is_tiny = to_.node("Less", {a, real(f.two_to(1 - f.bias))});
  std::string bits = where(is_tiny, subnormal, normal);
  const double infinity = std::numeric_limits<double>::infinity();
  bits = where(to_.node("Equal", {a, real(infinity)}), whole(f.infinity()), bits);
  bits = where(to_.node("Equal", {x, x}), bits, whole(f.nan()));
  // 1 / -0 is negative.
  const std::string signed_x = where(to_.node("Equal", {x, zero}), to_.node("Reciprocal", {x}), x);
  const std::string sign =
      where(to_.node("Less", {signed_x, zero}), whole(sign_of(dtype)), whole(0));
  return cast(to_.node("BitwiseOr", {bits, sign}), DType::I64, dtype);
}

std::string Translation::value_of(Id bits, DType dtype) {
  const Layout f = layout_of(dtype);
  const auto real = [&](double x) { return number(DType::F64, x); };
  const auto whole = [&](std::int64_t x) { return number(DType::I64, 0, x); };
  const std::string all = in(bits, DType::I64), zero = whole(0);
  const std::string size = to_.node("BitwiseAnd", {all, whole(~sign_of(dtype))});
  const std::string biased = to_.node("Div", {size, whole(f.one())});
  const std::string part = to_.node("Sub", {size, to_.node("Mul", {biased, whole(f.one())})});
  const std::string fraction =
      to_.node("Mul", {cast(part, DType::I64, DType::F64), real(f.two_to(-f.fraction))});
  const std::string least = real(f.two_to(1 - f.bias));
  const std::string is_below = to_.node("Less", {biased, whole(f.bias)});
  std::string value =
      to_.node("Mul", {to_.node("Add", {fraction, real(1)}), where(is_below, least, real(1))});
  std::string exponent = to_.node("Sub", {biased, where(is_below, whole(1), whole(f.bias))});
  for (int k = (f.bias + 1) / 2; k > 0; k /= 2) {
    const std::string is_larger = to_.node("GreaterOrEqual", {exponent, whole(k)});
    value = to_.node("Mul", {value, where(is_larger, real(f.two_to(k)), real(1))});
    exponent = to_.node("Sub", {exponent, where(is_larger, whole(k), zero)});
  }
  value = where(to_.node("Equal", {biased, zero}), to_.node("Mul", {fraction, least}), value);
  const double infinity = std::numeric_limits<double>::infinity();
  const std::string is_number = to_.node("Less", {size, whole(f.infinity())});
  const std::string is_infinite = to_.node("Equal", {size, whole(f.infinity())});
  value = where(is_number, value, where(is_infinite, real(infinity), real(std::nan(""))));
  const std::string is_negative = to_.node(
      "Not", {to_.node("Equal", {to_.node("BitwiseAnd", {all, whole(sign_of(dtype))}), zero})});
  // The sign by a product: ONNX Runtime's Where turns -0 into 0.
  const std::string sign = where(is_negative, real(-1), real(1));
  return cast(to_.node("Mul", {value, sign}), DType::F64, dtype);
}

}  // namespace plugrad::onnx
