// Comparisons of index sums, of casts, and of a value with itself.
//   before  r0*4 + r1 + 8 < 20      after  r0 < 3      (0 <= r1 < 4)
#include <numeric>

#include "ir/fold.h"
#include "symbolic/rules/tables.h"

namespace plugrad {
namespace {
using namespace rules;

Id truth(Graph& g, bool value) {
  return g.constant(DType::Bool, int64_t{value});
}

int64_t common_factor(const Linear& sum) {
  int64_t factor = 0;
  for (const Term& t : sum.terms) factor = std::gcd(factor, t.factor);
  return factor;
}

// Splits a sum into left - right with positive factors on both sides.
struct Sides {
  Linear left, right;
};
Sides sides_of(const Linear& sum) {
  Sides s;
  for (const Term& t : sum.terms) {
    if (t.factor > 0)
      s.left.terms.push_back(t);
    else
      s.right.terms.push_back({t.id, -t.factor});
  }
  (s.left.terms.empty() ? s.left : s.right).constant =
      s.left.terms.empty() ? sum.constant : -sum.constant;
  return s;
}

Id build_comparison(Graph& g, Op op, const Linear& sum) {
  const Sides s = sides_of(sum);
  return g.binary(op, build(g, s.left, DType::Index), build(g, s.right, DType::Index));
}

std::optional<Linear> difference(Graph& g, Id a, Id b) {
  auto left = linear_of(g, a);
  const auto right = linear_of(g, b);
  if (!left || !right) return std::nullopt;
  for (const Term& t : right->terms) left->add(t.id, -t.factor);
  if (__builtin_sub_overflow(left->constant, right->constant, &left->constant)) return std::nullopt;
  return left;
}

// f*H + S < 0, with the constant in S, is H + floor(S / f) < 0: simpler if that quotient is
// constant.
bool drop_small_terms(Linear& sum, Bounds& bounds) {
  for (const Term& t : sum.terms) {
    const int64_t f = std::abs(t.factor);
    if (f == 1) continue;
    Linear high, low;
    for (const Term& u : sum.terms) {
      if (u.factor % f == 0)
        high.terms.push_back({u.id, u.factor / f});
      else
        low.terms.push_back(u);
    }
    low.constant = sum.constant;
    const Interval values = interval_of(low, bounds);
    if (values.lo == INT64_MIN || values.hi == INT64_MAX) continue;
    if (floor_div(values.lo, f) != floor_div(values.hi, f)) continue;
    high.constant = floor_div(values.lo, f);
    sum = std::move(high);
    return true;
  }
  return false;
}

// y // a + k < 0 is y + k*a < 0;  k - y // a < 0 is (k+1)*a - 1 - y < 0.
bool drop_division(const Graph& g, Linear& sum) {
  if (sum.terms.size() != 1) return false;
  const Node& n = g[sum.terms[0].id];
  const int64_t factor = sum.terms[0].factor;
  if (n.op != Op::FloorDiv || !is_const(g, n.src[1]) || (factor != 1 && factor != -1)) return false;
  const int64_t a = const_int(g, n.src[1]);
  const auto y = linear_of(g, n.src[0]);
  int64_t constant;
  if (a <= 0 || !y || __builtin_mul_overflow(sum.constant + (factor == 1 ? 0 : 1), a, &constant))
    return false;
  Linear result;
  result.constant = factor == 1 ? constant : constant - 1;
  for (const Term& t : y->terms) result.add(t.id, factor * t.factor);
  result.constant += factor * y->constant;
  sum = std::move(result);
  return true;
}

Id less_index(Graph& g, const Match& m) {
  Bounds& bounds = m.context<Algebra>().bounds;
  auto sum = difference(g, m[x], m[y]);
  if (!sum) return kNoMatch;
  for (bool again = true; again;) {
    const Interval values = interval_of(*sum, bounds);
    if (values.hi < 0) return truth(g, true);
    if (values.lo >= 0) return truth(g, false);
    const int64_t f = common_factor(*sum);
    if (f > 1) *sum = divided(*sum, f);
    again = drop_small_terms(*sum, bounds) || drop_division(g, *sum);
  }
  return build_comparison(g, Op::CmpLt, *sum);
}

Id equal_index(Graph& g, const Match& m) {
  Bounds& bounds = m.context<Algebra>().bounds;
  const Op op = g[m.root].op;
  auto sum = difference(g, m[x], m[y]);
  if (!sum) return kNoMatch;
  const bool if_unequal = op == Op::CmpNe;
  const int64_t f = common_factor(*sum);
  if (f == 0) return truth(g, (sum->constant == 0) != if_unequal);
  if (sum->constant % f != 0 || !interval_of(*sum, bounds).contains(0)) return truth(g, if_unequal);
  if (f > 1) *sum = divided(*sum, f);
  if (sum->terms[0].factor < 0) {
    for (Term& t : sum->terms) t.factor = -t.factor;
    sum->constant = -sum->constant;
  }
  return build_comparison(g, op, *sum);
}

// Compares before two casts from one dtype that keep the value.
Id compare_casts(Graph& g, const Match& m) {
  Bounds& bounds = m.context<Algebra>().bounds;
  const Id a = m[x], b = m[y];
  const DType to = g[g[m.root].src[0]].dtype;
  if (g[a].dtype != g[b].dtype || !keeps_values(g, a, to, bounds) ||
      !keeps_values(g, b, to, bounds))
    return kNoMatch;
  return g.binary(g[m.root].op, a, b);
}

// -127 of i8 and 4294967169 of u32 have the same low bits, but are different numbers.
bool same_number(const Graph& g, Id a, Id b) {
  if (is_float(g[a].dtype) || is_float(g[b].dtype)) return const_float(g, a) == const_float(g, b);
  const auto above = [&](Id id) { return g[id].dtype == DType::U64 && const_int(g, id) < 0; };
  return const_int(g, a) == const_int(g, b) && above(a) == above(b);
}

// Compares before a cast if the constant has the same value in the dtype before.
Id compare_cast_constant(Graph& g, const Match& m) {
  Bounds& bounds = m.context<Algebra>().bounds;
  const Node n = g[m.root];
  const DType from = g[m[x]].dtype, to = g[m[c0]].dtype;
  if (!keeps_values(g, m[x], to, bounds)) return kNoMatch;
  const Id before = add_folded(g, Op::Cast, from, {m[c0]});
  if (same_number(g, before, m[c0])) {
    const bool constant_left = g[n.src[0]].op == Op::Const;
    return constant_left ? g.binary(n.op, before, m[x]) : g.binary(n.op, m[x], before);
  }
  return n.op == Op::CmpLt ? kNoMatch : truth(g, n.op == Op::CmpNe);
}

// clang-format off
constexpr Rule kCompare[] = {
    rule("less-self",            x < x,               false),
    rule("equal-self",           x == x,              true,              when(is_int_or_bool(x))),
    rule("not-equal-self",       x != x,              false,             when(is_int_or_bool(x))),
    rule("less-casts",           cast(x) < cast(y),   code<compare_casts>),
    rule("equal-casts",          cast(x) == cast(y),  code<compare_casts>),
    rule("not-equal-casts",      cast(x) != cast(y),  code<compare_casts>),
    rule("less-cast-const",      cast(x) < c0,        code<compare_cast_constant>),
    rule("less-const-cast",      c0 < cast(x),        code<compare_cast_constant>),
    rule("equal-cast-const",     cast(x) == c0,       code<compare_cast_constant>),
    rule("not-equal-cast-const", cast(x) != c0,       code<compare_cast_constant>),
    rule("less-index",           x < y,               code<less_index>,  when(is_index(x))),
    rule("equal-index",          x == y,              code<equal_index>, when(is_index(x))),
    rule("not-equal-index",      x != y,              code<equal_index>, when(is_index(x))),
    rule("less-both", (x < c0) & (x < c1), x < (c0 + c1 - max(c0, c1)), when(is_index(x))),
    rule("greater-both",         (c0 < x) & (c1 < x), max(c0, c1) < x,   when(is_int(x))),
    rule("less-either",          (x < c0) | (x < c1), x < max(c0, c1),   when(is_int(x))),
};
// clang-format on
}  // namespace

std::span<const Rule> compare_rules() {
  return kCompare;
}

}  // namespace plugrad
