// Rewrites x // c and x % c for a sum x in unbounded integers:
//   whole multiples   terms with a factor divisible by c become quotient, not modulus
//   one period        if the remainder stays in [q*c, (q+1)*c) the quotient is q
//   congruence        smaller factors, equal modulo c, if they give one period
//   common factor     (g*a + r) // (g*d) is a // d for 0 <= r < g
//   nested            (y // a) // b is y // (a*b);  (y % a) % b is y % b if b divides a
#include "symbolic/rules/divmod.h"

#include <numeric>

#include "ir/fold.h"

namespace plugrad {
namespace {

struct Split {
  Linear quotient, remainder;  // x == c * quotient + remainder
};

// The quotient takes whole multiples; the constant of the remainder lies in [0, c).
Split take_multiples(const Linear& x, int64_t c) {
  Split s;
  for (const Term& t : x.terms) {
    if (t.factor % c == 0)
      s.quotient.terms.push_back({t.id, t.factor / c});
    else
      s.remainder.terms.push_back(t);
  }
  s.quotient.constant = floor_div(x.constant, c);
  s.remainder.constant = floor_mod(x.constant, c);
  return s;
}

// Moves multiples of c from the remainder's factors to the quotient: for c 12, 13 becomes 1 and 11
// becomes -1.
Split take_congruent(const Split& from, int64_t c) {
  Split s{from.quotient, {}};
  s.remainder.constant = from.remainder.constant;
  for (const Term& t : from.remainder.terms) {
    int64_t left = floor_mod(t.factor, c);
    if (left > c - left) left -= c;
    s.quotient.add(t.id, (t.factor - left) / c);
    s.remainder.add(t.id, left);
  }
  return s;
}

// If the remainder stays in one period of c, the quotient is constant: returns x // c and leaves x
// % c.
std::optional<Split> in_one_period(Split s, int64_t c, Bounds& bounds) {
  const Interval values = interval_of(s.remainder, bounds);
  if (values.lo == INT64_MIN || values.hi == INT64_MAX) return std::nullopt;
  const int64_t period = floor_div(values.lo, c);
  if (period != floor_div(values.hi, c)) return std::nullopt;
  s.quotient.constant += period;
  s.remainder.constant -= period * c;
  return s;
}

// x // c and x % c as sums, if both are free of division.
std::optional<Split> divide_exactly(const Linear& x, int64_t c, Bounds& bounds) {
  const Split s = take_multiples(x, c);
  if (auto found = in_one_period(s, c, bounds)) return found;
  return in_one_period(take_congruent(s, c), c, bounds);
}

Linear plus(Linear a, const Linear& b, int64_t factor = 1) {
  for (const Term& t : b.terms) a.add(t.id, t.factor * factor);
  a.constant += b.constant * factor;
  return a;
}

Linear term(Id id, int64_t factor = 1) {
  return {{{id, factor}}, 0};
}

class Division {
 public:
  Division(Graph& g, Id id, Linear x, int64_t c, Bounds& bounds)
      : g_(g),
        is_div_(g[id].op == Op::FloorDiv),
        dtype_(g[id].dtype),
        x_(std::move(x)),
        c_(c),
        bounds_(bounds) {}

  std::optional<Linear> simplified() {
    const auto result = simplified_sum();
    return fits_ ? result : std::nullopt;
  }

 private:
  std::optional<Linear> simplified_sum() {
    drop_inner_modulus();
    if (const auto split = divide_exactly(x_, c_, bounds_))
      return is_div_ ? split->quotient : split->remainder;
    if (auto found = by_common_factor()) return found;
    if (auto found = by_multiples()) return found;
    if (auto found = by_nesting()) return found;
    return changed_ ? std::optional(whole(x_, c_)) : std::nullopt;
  }

  // The division of `x` by `c` as a sum, unsimplified. Dtypes other than Index wrap: the result
  // only holds if `x` and `c` fit.
  Linear whole(const Linear& x, int64_t c) {
    if (dtype_ != DType::Index) {
      const Interval all = dtype_interval(dtype_), values = interval_of(x, bounds_);
      fits_ = fits_ && all.lo <= values.lo && values.hi <= all.hi && all.contains(c);
    }
    return term(g_.binary(is_div_ ? Op::FloorDiv : Op::FloorMod, build(g_, x, dtype_),
                          g_.constant(dtype_, c)));
  }

  // a * (y % n) is a * y modulo c if c divides a * n: only valid for the modulus.
  void drop_inner_modulus() {
    if (is_div_) return;
    for (bool again = true; again;) {
      again = false;
      for (const Term t : x_.terms) {
        const Node& n = g_[t.id];
        if (n.op != Op::FloorMod || n.dtype != DType::Index || !is_const(g_, n.src[1])) continue;
        const int64_t size = const_int(g_, n.src[1]);
        int64_t product;
        if (__builtin_mul_overflow(size, t.factor, &product) || product % c_ != 0) continue;
        const auto inner = linear_of(g_, n.src[0]);
        if (!inner) continue;
        x_.add(t.id, -t.factor);
        x_ = plus(x_, *inner, t.factor);
        changed_ = again = true;
        break;
      }
    }
  }

  // x = f * high + low with 0 <= low < f and f dividing c: x // c is high // (c / f).
  std::optional<Linear> by_common_factor() {
    for (const Term& t : x_.terms) {
      const int64_t f = std::gcd(t.factor, c_);
      if (f <= 1 || f == c_) continue;
      const auto split = divide_exactly(x_, f, bounds_);
      if (!split) continue;
      const Linear inner = whole(split->quotient, c_ / f);
      return is_div_ ? inner : plus(split->remainder, inner, f);
    }
    return std::nullopt;
  }

  // (c*q + r) // c is q + r // c;  (c*q + r) % c is r % c.
  std::optional<Linear> by_multiples() {
    Split s = take_multiples(x_, c_);
    if (!is_div_) {
      for (Term& t : s.remainder.terms) t.factor %= c_;
    }
    if (s.remainder == x_) return std::nullopt;
    return is_div_ ? plus(s.quotient, whole(s.remainder, c_)) : whole(s.remainder, c_);
  }

  // (y // a + k) // c is (y + k*a) // (a*c);  (y % a) // c is (y // c) % (a / c) if c divides a.
  std::optional<Linear> by_nesting() {
    if (!is_div_ || x_.terms.size() != 1 || x_.terms[0].factor != 1) return std::nullopt;
    const Node& n = g_[x_.terms[0].id];
    if ((n.op != Op::FloorDiv && n.op != Op::FloorMod) || !is_const(g_, n.src[1]))
      return std::nullopt;
    const int64_t a = const_int(g_, n.src[1]);
    // A sum of another dtype may have wrapped: it stays one term.
    auto y = dtype_ == DType::Index ? linear_of(g_, n.src[0]) : term(n.src[0]);
    int64_t product, offset;
    if (a <= 0 || !y) return std::nullopt;
    if (n.op == Op::FloorMod) {
      if (x_.constant != 0 || a % c_ != 0) return std::nullopt;
      const Id high = g_.binary(Op::FloorDiv, n.src[0], g_.constant(dtype_, c_));
      return term(g_.binary(Op::FloorMod, high, g_.constant(dtype_, a / c_)));
    }
    if (__builtin_mul_overflow(a, c_, &product) || __builtin_mul_overflow(x_.constant, a, &offset))
      return std::nullopt;
    y->constant += offset;
    return whole(*y, product);
  }

  Graph& g_;
  bool is_div_;
  DType dtype_;
  Linear x_;
  int64_t c_;
  Bounds& bounds_;
  bool changed_ = false, fits_ = true;
};

// Finds n * factor * (y // n) for t = factor * (y % n): their sum is factor * y.
bool merge_pair(Graph& g, Linear& sum, const Term& t) {
  const Node n = g[t.id];
  if (n.op != Op::FloorMod || !is_const(g, n.src[1])) return false;
  const int64_t size = const_int(g, n.src[1]);
  int64_t scaled;
  if (size <= 0 || __builtin_mul_overflow(size, t.factor, &scaled)) return false;
  for (const Term& other : sum.terms) {
    if (other.factor != scaled) continue;
    const Node& o = g[other.id];
    const bool constant_divisor =
        (o.op == Op::FloorDiv || o.op == Op::FloorMod) && is_const(g, o.src[1]);
    if (!constant_divisor) continue;
    const int64_t divisor = const_int(g, o.src[1]);
    Id merged = kNoId;
    if (o.op == Op::FloorDiv && o.src[0] == n.src[0] && divisor == size) {
      merged = n.src[0];
    } else if (o.op == Op::FloorDiv && g[n.src[0]].op == Op::FloorDiv &&
               is_const(g, g[n.src[0]].src[1])) {
      // (y // a) % n with y // (a * n)
      const Node& inner = g[n.src[0]];
      if (o.src[0] == inner.src[0] && divisor == const_int(g, inner.src[1]) * size)
        merged = n.src[0];
    } else if (o.op == Op::FloorMod && divisor > 0) {
      // y % n with (y // n) % d: together y % (n * d)
      const Node& inner = g[o.src[0]];
      if (inner.op == Op::FloorDiv && inner.src[0] == n.src[0] && is_const(g, inner.src[1]) &&
          const_int(g, inner.src[1]) == size) {
        merged = g.binary(Op::FloorMod, n.src[0], g.constant(n.dtype, size * divisor));
      }
    }
    if (merged == kNoId) continue;
    const Term second = other;
    sum.add(second.id, -second.factor);
    sum.add(t.id, -t.factor);
    if (const auto inner = linear_of(g, merged))
      sum = plus(sum, *inner, t.factor);
    else
      sum.add(merged, t.factor);
    return true;
  }
  return false;
}

}  // namespace

std::optional<Id> split_quotient(Graph& g, Id id, Bounds& bounds) {
  const Node n = g[id];
  auto x = linear_of(g, n.src[0]);
  const int64_t c = const_int(g, n.src[1]);
  if (!x || c <= 1 || !is_exact(g, n.src[0], *x, bounds)) return std::nullopt;
  const auto result = Division(g, id, std::move(*x), c, bounds).simplified();
  return result ? std::optional(build(g, *result, n.dtype)) : std::nullopt;
}

void recombine(Graph& g, Linear& sum) {
  for (bool again = true; again;) {
    again = false;
    for (const Term t : sum.terms) {
      if ((again = merge_pair(g, sum, t))) break;
    }
  }
}

}  // namespace plugrad
