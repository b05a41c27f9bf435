#include "oracle/rounding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ir/round.h"

namespace plugrad::oracle {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

bool any_error(std::span<const Term> terms) {
  return std::any_of(terms.begin(), terms.end(), [](const Term& t) { return t.error != 0; });
}

// A zero divisor's sign is not known: max(-0, +0) may be either.
double quotient_error(double result, Term above, Term below) {
  const double least = std::fabs(below.value) - below.error;
  if (!(least > 0)) return kUnknown;
  if (above.error == 0 && below.error == 0) return 0;
  return (above.error + std::fabs(result) * below.error) / least;
}

// Tests if an exact infinity determines the result for any finite other operand: x - inf, and
// 2^-inf = 0, as in the softmax of a masked row.
bool is_certain_infinity(Op op, double result, std::span<const Term> x) {
  if (op == Op::Exp2 || op == Op::Exp) return std::isinf(x[0].value) && x[0].error == 0;
  if ((op != Op::Add && op != Op::Sub) || !std::isinf(result)) return false;
  const bool first = std::isinf(x[0].value);
  const Term infinite = x[first ? 0 : 1], finite = x[first ? 1 : 0];
  return infinite.error == 0 && std::isinf(infinite.value) && std::isfinite(finite.value) &&
         std::isfinite(finite.error);
}

// Propagates the errors of the operands, before the op's own rounding.
double passed_on(Op op, double result, std::span<const Term> x) {
  const Term a = x[0], b = x.size() > 1 ? x[1] : Term{0, 0};
  const double least = a.value - a.error;
  switch (op) {
    case Op::Add:
    case Op::Sub:
      return a.error + b.error;
    case Op::Mul:
      if (a.error == 0 && b.error == 0) return 0;
      return std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error;
    case Op::FDiv:
      return quotient_error(result, a, b);
    case Op::Recip:
      return quotient_error(result, {1, 0}, a);
    case Op::Max:
      return maximum_error(x);
    case Op::Sqrt:
      if (a.error == 0) return 0;
      return least > 0 ? a.error / std::sqrt(least) : kUnknown;
    case Op::Trunc:
      return std::trunc(least) == std::trunc(a.value + a.error) ? 0 : kUnknown;
    case Op::Exp2:
      return a.error == 0 ? 0 : result * (std::exp2(a.error) - 1);
    case Op::Exp:
      return a.error == 0 ? 0 : result * std::expm1(a.error);
    case Op::Log2:
      if (a.error == 0) return 0;
      return least > 0 ? a.error / (least * std::log(2.0)) : kUnknown;
    case Op::Log:
      if (a.error == 0) return 0;
      return least > 0 ? a.error / least : kUnknown;
    case Op::Pow: {
      if (a.error == 0 && b.error == 0) return 0;
      if (!(least > 0)) return kUnknown;
      const double largest =
          std::max(std::fabs(std::log(least)), std::fabs(std::log(a.value + a.error)));
      return result *
             std::expm1((std::fabs(b.value) + b.error) * a.error / least + b.error * largest);
    }
    case Op::Neg:
    case Op::Sin:
    case Op::Cos:
    case Op::Cast:
      return a.error;
    default:
      return any_error(x) ? kUnknown : 0;
  }
}

}  // namespace

int precision_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 53;
    case DType::F16:
      return 11;
    case DType::BF16:
      return 8;
    case DType::F8E4M3:
      return 4;
    case DType::F8E5M2:
      return 3;
    default:
      return 24;
  }
}

double largest_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return std::numeric_limits<double>::max();
    case DType::F16:
      return 65504;
    case DType::BF16:
      return 3.3895e38;
    case DType::F8E4M3:
      return 448;
    case DType::F8E5M2:
      return 57344;
    default:
      return std::numeric_limits<float>::max();
  }
}

double spacing(double magnitude, DType dtype) {
  const double least = dtype == DType::F64      ? 0x1p-1022
                       : dtype == DType::F16    ? 0x1p-14
                       : dtype == DType::F8E4M3 ? 0x1p-6
                       : dtype == DType::F8E5M2 ? 0x1p-14
                                                : 0x1p-126;
  int exponent = 0;
  std::frexp(std::max(std::fabs(magnitude), least), &exponent);
  return std::ldexp(1.0, exponent - precision_of(dtype));
}

double float_error(Op op, DType dtype, double result, std::span<const Term> terms) {
  if (is_certain_infinity(op, result, terms)) return 0;
  double error = passed_on(op, result, terms);
  if (is_transcendental(op) && std::isfinite(result)) {
    // Small dtypes go through f32; underflow may flush.
    error += 4 * spacing(result, dtype) + (dtype == DType::F64 ? 1e-300 : 1e-37);
  }
  if (error == 0) return 0;
  if (!std::isfinite(result) || std::isnan(error)) return any_error(terms) ? kUnknown : error;
  error += spacing(std::fabs(result) + error, dtype);
  return std::fabs(result) + error > largest_of(dtype) ? kUnknown : error;
}

double whole_error(Op op, DType dtype, DType source, std::span<const Term> x) {
  // The signs of zero and of NaN are not known.
  if (op == Op::Bitcast && is_float(source) && !(std::fabs(x[0].value) > 0)) return kUnknown;
  if (!any_error(x)) return 0;
  const Term a = x[0], b = x.size() > 1 ? x[1] : Term{0, 0};
  if (std::isinf(a.error) || std::isinf(b.error)) {
    if (dtype != DType::Bool || (op != Op::And && op != Op::Or)) return kUnknown;
    const double ruling = op == Op::And ? 0 : 1;  // one side may decide alone
    const bool certain = (a.error == 0 && a.value == ruling) || (b.error == 0 && b.value == ruling);
    return certain ? 0 : kUnknown;
  }
  if (op == Op::CmpLt || op == Op::CmpEq || op == Op::CmpNe)
    return std::fabs(a.value - b.value) > a.error + b.error || std::isnan(a.value) ||
                   std::isnan(b.value) || std::isinf(a.value) || std::isinf(b.value)
               ? 0
               : kUnknown;
  if (op != Op::Cast) return kUnknown;
  if (dtype == DType::Bool) return std::fabs(a.value) > a.error ? 0 : kUnknown;
  const bool same =
      float_to_int(a.value - a.error, dtype) == float_to_int(a.value + a.error, dtype);
  return same ? 0 : kUnknown;
}

double maximum_error(std::span<const Term> terms) {
  double least = -kUnknown, error = 0;
  for (const Term& t : terms) least = std::max(least, t.value - t.error);
  // Terms that are certainly below the largest do not contribute.
  for (const Term& t : terms)
    if (!(t.value + t.error < least)) error = std::max(error, t.error);
  return error;
}

double sum_error(DType dtype, std::span<const Term> terms) {
  double magnitude = 0, error = 0, grid = kUnknown;
  size_t count = 0;
  bool finite = true;
  for (const Term& t : terms) {
    error += t.error;
    if (t.value == 0 && t.error == 0) continue;
    finite = finite && std::isfinite(t.value);
    magnitude += std::fabs(t.value) + t.error;
    ++count;
    int exponent = 0;  // value = odd multiple of 2^…
    const double fraction = std::frexp(std::fabs(t.value), &exponent);
    const auto digits = finite ? static_cast<uint64_t>(std::ldexp(fraction, 53)) : 0;
    if (digits != 0)
      grid = std::min(grid, std::ldexp(1.0, exponent - 53 + std::countr_zero(digits)));
  }
  if (std::isnan(error) || std::isinf(error)) return kUnknown;
  if (!finite) return error == 0 ? 0 : kUnknown;
  if (magnitude > largest_of(dtype)) return kUnknown;
  if (count <= 1 && error == 0) return 0;
  const int precision = precision_of(dtype);
  if (error == 0 && magnitude <= std::ldexp(grid, precision)) return 0;
  return error + std::ldexp(magnitude, -precision) * static_cast<double>(count) +
         spacing(magnitude, dtype);
}

double product_error(DType dtype, std::span<const Term> terms) {
  double exact = 1, most = 1, above = 1, below = 1;
  size_t count = 0;
  int digits = 0;
  for (const Term& t : terms) {
    const double size = std::fabs(t.value), wide = size + t.error;
    if (!std::isfinite(wide)) return any_error(terms) ? kUnknown : 0;
    exact *= size;
    most *= wide;
    above *= std::max(wide, 1.0);
    if (size != 0) below *= std::min(size, 1.0);
    if (size == 1 && t.error == 0) continue;
    ++count;
    int exponent = 0;
    const auto bits = static_cast<uint64_t>(std::ldexp(std::frexp(size, &exponent), 53));
    if (bits != 0) digits += 53 - std::countr_zero(bits);
  }
  if (above > largest_of(dtype) || below < 1e-37) return kUnknown;
  const bool clean = !any_error(terms);
  if (clean && (count <= 1 || digits <= precision_of(dtype))) return 0;
  return most - exact + std::ldexp(most, -precision_of(dtype)) * static_cast<double>(count + 1) +
         spacing(most, dtype);
}

}  // namespace plugrad::oracle
