// Identities of integer and bool ops. Canonical integers have no Sub and no Neg.
#include "symbolic/rules/tables.h"

namespace plugrad {
namespace {
using namespace rules;

// x // x is 0 for x == 0.
bool never_zero(const Graph&, const Match& m) {
  return !m.context<Algebra>().bounds[m[x]].contains(0);
}

// The literal -1 is the largest value of an unsigned dtype.
bool is_signed(const Graph& g, const Match& m) {
  return !is_unsigned(g[m.root].dtype);
}

Id larger_by_bounds(Graph&, const Match& m) {
  Bounds& bounds = m.context<Algebra>().bounds;
  const Interval a = bounds[m[x]], b = bounds[m[y]];
  // For a clamped U64 bound, hi is the largest value and neither test holds.
  if (a.lo >= b.hi && b.hi != INT64_MAX) return m[x];
  if (b.lo >= a.hi && a.hi != INT64_MAX) return m[y];
  return kNoMatch;
}

// clang-format off
constexpr Rule kIdentities[] = {
    rule("add-zero",      x + 0,                                           x,      when(is_int(x))),
    rule("mul-one",       x * 1,                                           x),
    rule("mul-zero", x * 0, 0, when(is_int_or_bool(x))),
    rule("sub-is-add", x - y, x + y * -1, when(is_int(x))),
    rule("neg-is-mul",    -x,                                              x * -1, when(is_int(x))),
    rule("idiv-one",      idiv(x, 1),                                      x),
    rule("idiv-minus-one", idiv(x, -1), x * -1, when(check<is_signed>)),
    rule("mod-one", of_class(imod(x, 1), kIntegerClass), 0),
    rule("div-one",       x / 1,                                           x),
    rule("floormod-one",  x % 1,                                           0),
    rule("div-minus-one", x / -1, x * -1, when(check<is_signed>)),
    rule("zero-idiv",     idiv(0, x),                                      0),
    rule("zero-mod", of_class(imod(0, x), kIntegerClass), 0),
    rule("zero-div",      0 / x,                                           0),
    rule("zero-floormod", 0 % x,                                           0),
    rule("idiv-zero",     idiv(x, 0),                                      0),
    rule("mod-by-zero", of_class(imod(x, 0), kIntegerClass), x),
    rule("div-zero",      x / 0,                                           0),
    rule("floormod-zero", x % 0,                                           x),
    rule("mod-self", of_class(imod(x, x), kIntegerClass), 0),
    rule("floormod-self", x % x,                                           0),
    rule("div-self", x / x, 1, when(check<never_zero>)),
    rule("idiv-self", idiv(x, x), 1, when(check<never_zero>)),
    rule("max-self",      max(x, x),                                       x),
    rule("max-again",     max(max(x, y), y),                               max(x, y)),
    rule("max-bounds",    of_class(max(x, y), kIntegerClass | kBoolClass), code<larger_by_bounds>),
    rule("and-self",      x & x,                                           x),
    rule("or-self",       x | x,                                           x),
    rule("xor-self",      x ^ x,                                           0),
    rule("and-zero",      x & 0,                                           0),
    rule("or-zero",       x | 0,                                           x),
    rule("xor-zero",      x ^ 0,                                           x),
    rule("and-ones",      x & -1,                                          x),
    rule("or-ones",       x | -1,                                          -1),
    rule("and-again",     (x & y) & y,                                     x & y),
    rule("or-again",      (x | y) | y,                                     x | y),
    rule("xor-again",     (x ^ y) ^ y,                                     x),
    rule("absorb-and",    (x | y) & y,                                     y),
    rule("absorb-or",     (x & y) | y,                                     y),
    rule("shl-zero",      shl(x, 0),                                       x),
    rule("shr-zero",      shr(x, 0),                                       x),
    rule("zero-shl",      shl(0, x),                                       0),
    rule("zero-shr",      shr(0, x),                                       0),
};
// clang-format on
}  // namespace

std::span<const Rule> identity_rules() {
  return kIdentities;
}

}  // namespace plugrad
