// Powers: integer exponents by repeated squaring, others by the op Pow of |x|.
#include <cmath>

#include "plugrad/functional.h"
#include "tensor/elementwise/compositions.h"

namespace plugrad {

using tensor::Formula;
using tensor::Recorder;
using tensor::Takes;

namespace {

/// x to an integer power of 1 or more by repeated squaring; exact for integers.
Formula whole_power(const Formula& x, uint64_t exponent) {
  Formula square = x;
  while ((exponent & 1) == 0) {
    square = square * square;
    exponent >>= 1;
  }
  Formula result = square;
  while ((exponent >>= 1) != 0) {
    square = square * square;
    if (exponent & 1) result = result * square;
  }
  return result;
}

/// Integers to integer powers, by the exponent's bits. A negative exponent gives 0 except for the
/// bases 1 and -1.
Tensor integer_power(const Tensor& x, const Tensor& exponent) {
  Tensor result = Tensor(1).cast(x.dtype()), square = x;
  const int bits = static_cast<int>(size_of(exponent.dtype())) * 8;
  for (int bit = 0; bit < bits; ++bit) {
    result = where(((exponent >> bit) & 1) != 0, result * square, result);
    square = square * square;
  }
  if (is_unsigned(exponent.dtype())) return result;
  const Tensor one = x.ones_like(), zero = x.zeros_like();
  const Tensor inverse =
      where(x == 1, one, where(x == -1, where((exponent & 1) == 0, one, -one), zero));
  return where(exponent < 0, inverse, result);
}

/// `approximate`, or x^y by squaring where it is more accurate: if y is 0 to 4, and if x is whole and
/// the power exact, as 3^15 in f32 (y to 63 in f64). Gradients are those of `approximate`.
Formula with_whole_powers(const Formula& x, const Formula& y, const Formula& approximate) {
  const bool is_f64 = x.is_f64();
  const int bits = is_f64 ? 6 : 4;
  const Formula is_counted = (y.trunc() == y) & (y >= 0.0) & (y < std::ldexp(1.0, bits));
  Formula count = where(is_counted, y, 0.0), product = x.constant(1.0), square = x;
  for (int bit = 0; bit < bits; ++bit) {
    const Formula half = (count * 0.5).trunc();
    product = where(half * 2.0 != count, product * square, product);
    square = square * square;
    count = half;
  }
  const Formula is_exact = (x.trunc() == x) & (product < (is_f64 ? 0x1p53 : 0x1p24));
  const Formula difference = product - approximate;
  const Formula is_better = is_counted & ((y <= 4.0) | is_exact) & difference.isfinite();
  return approximate + where(is_better, difference, 0.0).detach();
}

/// |x|^y, then the special cases. 0 and 1 are special cases only where the op is NaN: elsewhere its
/// gradient is needed.
Formula real_power(const Formula& x, const Formula& y, bool may_be_whole) {
  const Formula is_zero = x == 0.0;
  const Formula safe = where(is_zero, 1.0, tensor::magnitude(x));
  Formula size = Formula::binary(Op::Pow, safe, y);
  if (may_be_whole) size = with_whole_powers(safe, y, size);
  const Formula whole = y.trunc() == y, odd = whole & ((y * 0.5).trunc() * 2.0 != y);
  const Formula negative = where(whole | x.isinf(), where(odd, -size, size), NAN);
  // At x = 0: functions whose derivative there is the limit of the power's derivative.
  const Formula is_root = (y > 0.0) & (y < 1.0),
                root = (where(is_zero & is_root, x, 1.0) + 0.0).sqrt();
  const Formula inverse = where(is_zero & (y < 0.0), x, 1.0).reciprocal();
  const Formula pole = where(odd, inverse, inverse.abs());
  const Formula zero = where(odd, x.detach(), 0.0);
  const Formula above = where(y == 1.0, x, where(is_root, root, zero));
  const Formula at_zero = where(y < 0.0, pole, where(y == 0.0, 1.0, above));
  const Formula at_nan = where(y != y, y, at_zero);
  const Formula general = where(is_zero, at_nan, where(x < 0.0, negative, size));
  const Formula always_one =
      ((y == 0.0) & !x.isfinite()) | (((x == 1.0) | ((x == -1.0) & y.isinf())) & !y.isfinite());
  return where(always_one, 1.0, general);
}

/// real_power with the derivatives that PyTorch defines, which hold at the edges too
/// (docs/accuracy.md): y x^(y - 1), 0 for y = 0; and x^y log x, 0 for x = 0 and y >= 0.
Formula power_with_slopes(const Formula& x, const Formula& y, bool may_be_whole) {
  const Formula value = real_power(x, y, may_be_whole);
  const Formula by_x = where(y == 0.0, 0.0, y * real_power(x, y - 1.0, may_be_whole));
  const Formula by_y = where((x == 0.0) & (y >= 0.0), 0.0, value * x.log());
  const Formula fixed = value.detach();
  // Adding -0 changes no value.
  const Formula always(x.graph(), x.graph().constant(DType::Bool, int64_t{1}));
  const Formula zero = where(always, -0.0, fixed);
  return tensor::with_slope(fixed, x, by_x) + tensor::with_slope(zero, y, by_y);
}

/// The exponent if it is a literal, for which pow builds cheaper graphs.
std::optional<double> literal_of(const Tensor& t) {
  Recorder r("pow");
  const Id node = r.use(t);
  if (!is_const(r.graph(), node)) return std::nullopt;
  return const_float(r.graph(), node);
}

/// x in the dtype of x^exponent, unless that is the dtype of a literal.
Tensor in_common_dtype(const Tensor& x, const Tensor& exponent) {
  Recorder r("pow");
  const Id node = r.use(x);
  const DType own = r.dtype(node), common = promote(own, r.dtype(r.use(exponent)));
  return common == own || size_of(common) == 0 ? x : r.done(r.cast(node, common));
}

/// Adding 0 turns -0 into 0: pow has no negative zeros for fractions.
Formula square_root(const Formula& x) {
  const Formula is_lowest = x == -INFINITY;
  return where(is_lowest, INFINITY, (where(is_lowest, 1.0, x) + 0.0).sqrt());
}

/// `exponent` is whole.
Formula literal_power(const Formula& x, double exponent) {
  if (exponent == 0) return tensor::constant_in(x, x.constant(1.0));
  const auto count = static_cast<uint64_t>(std::abs(exponent));
  const Formula power = whole_power(x, count);
  if (exponent > 0) return power;
  // Explicit slope: the chain rule of reciprocal() gives 0 * infinity at 0 and infinity.
  const Formula slope = whole_power(x, count + 1).reciprocal() * exponent;
  return tensor::with_slope(power.reciprocal(), x, slope);
}

}  // namespace

Tensor Tensor::pow(const Tensor& exponent) const {
  const std::optional<double> literal = literal_of(exponent);
  const bool real = is_float(dtype()) || is_float(exponent.dtype());
  const bool whole = literal && std::trunc(*literal) == *literal && std::abs(*literal) <= 64;
  require(real || !literal || *literal >= 0,
          "[pow] {} to {}: integers have no negative powers; cast to a float", name_of(dtype()),
          literal ? *literal : 0.0);
  const Tensor base = literal ? in_common_dtype(*this, exponent) : *this;
  const auto to_literal = [&](const Formula& x) { return literal_power(x, *literal); };
  if (literal && *literal == 0.5 && real && !is_integer(dtype()))
    return tensor::formula_of("pow", base, square_root);
  if (whole && *literal == 1 && (!real || is_float(base.dtype()))) return tensor::own_handle(base);
  if (whole && real) return tensor::real_formula_of("pow", base, to_literal);
  if (whole && base.dtype() == DType::Bool) return base | Tensor(*literal == 0);
  if (whole) return tensor::formula_of("pow", base, to_literal);
  // No integer dtype holds u64 and signed numbers: the result has the base's.
  if (!real && is_float(promote(dtype(), exponent.dtype()))) return integer_power(*this, exponent);
  if (real)
    return tensor::real_formula_of("pow", *this, exponent, [&](const Formula& x, const Formula& y) {
      return power_with_slopes(x, y, !literal);
    });
  Recorder r("pow");
  std::vector<Id> nodes = {r.use(*this), r.use(exponent)};
  r.match_dtypes(nodes, Takes::Numbers);
  return integer_power(r.done(nodes[0]), r.done(nodes[1]));
}

}  // namespace plugrad
