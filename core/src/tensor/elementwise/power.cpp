// Powers: integer exponents by repeated squaring, others by the op Pow of |x|.
#include <cmath>

#include "plugrad/functional.h"
#include "tensor/compute_dtype.h"
#include "tensor/elementwise/compositions.h"
#include "tensor/record.h"

namespace plugrad {

using tensor::Recorder;
using tensor::Takes;

namespace {

/// x to an integer power by repeated squaring; exact for integers.
Tensor whole_power(const Tensor& x, uint64_t exponent) {
  Tensor result, square = x;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = result.defined() ? result * square : square;
    if (exponent > 1) square = square * square;
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
Tensor with_whole_powers(const Tensor& x, const Tensor& y, const Tensor& approximate) {
  const bool is_f64 = x.dtype() == DType::F64;
  const int bits = is_f64 ? 6 : 4;
  const Tensor is_counted = (y.trunc() == y) & (y >= 0.0) & (y < std::ldexp(1.0, bits));
  Tensor count = where(is_counted, y, 0.0), product = 1.0, square = x;
  for (int bit = 0; bit < bits; ++bit) {
    const Tensor half = (count * 0.5).trunc();
    product = where(half * 2.0 != count, product * square, product);
    square = square * square;
    count = half;
  }
  const Tensor is_exact = (x.trunc() == x) & (product < (is_f64 ? 0x1p53 : 0x1p24));
  const Tensor difference = product - approximate;
  const Tensor is_better = is_counted & ((y <= 4.0) | is_exact) & difference.isfinite();
  return approximate + where(is_better, difference, 0.0).detach();
}

Tensor positive_power(const Tensor& x, const Tensor& y) {
  Recorder r("pow");
  std::vector<Id> nodes = {r.use(x), r.use(y)};
  r.match(nodes, Takes::Floats);
  return r.done(r.graph().binary(Op::Pow, nodes[0], nodes[1]));
}

/// |x|^y, then the special cases. 0 and 1 are special cases only where the op is NaN: elsewhere its
/// gradient is needed.
Tensor real_power(const Tensor& x, const Tensor& y, bool may_be_whole) {
  const Tensor is_zero = x == 0.0;
  const Tensor safe = where(is_zero, 1.0, tensor::magnitude(x));
  Tensor size = positive_power(safe, y);
  if (may_be_whole) size = with_whole_powers(safe, y, size);
  const Tensor whole = y.trunc() == y, odd = whole & ((y * 0.5).trunc() * 2.0 != y);
  const Tensor negative = where(whole | x.isinf(), where(odd, -size, size), NAN);
  // At x = 0: functions whose derivative there is the limit of the power's derivative.
  const Tensor is_root = (y > 0.0) & (y < 1.0),
               root = (where(is_zero & is_root, x, 1.0) + 0.0).sqrt();
  const Tensor inverse = where(is_zero & (y < 0.0), x, 1.0).reciprocal();
  const Tensor pole = where(odd, inverse, inverse.abs());
  const Tensor zero = where(odd, x.detach(), 0.0);
  const Tensor above = where(y == 1.0, x, where(is_root, root, zero));
  const Tensor at_zero = where(y < 0.0, pole, where(y == 0.0, 1.0, above));
  const Tensor at_nan = where(y != y, y, at_zero);
  const Tensor general = where(is_zero, at_nan, where(x < 0.0, negative, size));
  const Tensor always_one =
      ((y == 0.0) & !x.isfinite()) | (((x == 1.0) | ((x == -1.0) & y.isinf())) & !y.isfinite());
  return where(always_one, 1.0, general);
}

/// real_power with the derivatives that PyTorch defines, which hold at the edges too
/// (docs/accuracy.md): y x^(y - 1), 0 for y = 0; and x^y log x, 0 for x = 0 and y >= 0.
Tensor power_with_slopes(const Tensor& base, const Tensor& exponent, bool may_be_whole) {
  Recorder r("pow");
  std::vector<Id> nodes = {r.use(base), r.use(exponent)};
  r.match_shapes(nodes);
  const Tensor x = r.done(nodes[0]), y = r.done(nodes[1]), value = real_power(x, y, may_be_whole);
  const Tensor by_x = where(y == 0.0, 0.0, y * real_power(x, y - 1.0, may_be_whole));
  const Tensor by_y = where((x == 0.0) & (y >= 0.0), 0.0, value * x.log());
  const Tensor fixed = value.detach();
  // Adding -0 changes no value.
  const Tensor zero = where(Tensor(true), Tensor(-0.0).cast(x.dtype()), fixed);
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
Tensor square_root(const Tensor& x) {
  const Tensor is_lowest = x == -INFINITY;
  return where(is_lowest, INFINITY, (where(is_lowest, 1.0, x) + 0.0).sqrt());
}

Tensor literal_power(const Tensor& x, double exponent) {
  if (exponent == 0) return tensor::constant_in(x, x.ones_like());
  if (exponent == 1) return tensor::own_handle(x);
  const auto count = static_cast<uint64_t>(std::abs(exponent));
  const Tensor power = whole_power(x, count);
  if (exponent > 0) return power;
  // Explicit slope: the chain rule of reciprocal() gives 0 * infinity at 0 and infinity.
  const Tensor slope = whole_power(x, count + 1).reciprocal() * exponent;
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
  if (literal && *literal == 0.5 && real && !is_integer(dtype())) return square_root(base);
  if (whole && real)
    return tensor::in_compute_dtype(is_float(base.dtype()) ? base : base.cast(DType::F32),
                                    [&](const Tensor& x) { return literal_power(x, *literal); });
  if (whole && !real) return literal_power(base, *literal);
  // No integer dtype holds u64 and signed numbers: the result has the base's.
  if (!real && is_float(promote(dtype(), exponent.dtype()))) return integer_power(*this, exponent);
  Recorder r("pow");
  std::vector<Id> nodes = {r.use(*this), r.use(exponent)};
  r.match_dtypes(nodes, real ? Takes::Floats : Takes::Numbers);
  const Tensor x = r.done(nodes[0]), y = r.done(nodes[1]);
  if (!real) return integer_power(x, y);
  return tensor::in_compute_dtype(x, [&](const Tensor& promoted) {
    return power_with_slopes(promoted, y.cast(promoted.dtype()), !literal);
  });
}

}  // namespace plugrad
