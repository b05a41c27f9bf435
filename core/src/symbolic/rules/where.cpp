// Selections: constant conditions, equal arms, nested selections, and ops moved into constant arms.
#include "symbolic/rules/tables.h"

namespace plugrad {
namespace {
using namespace rules;

// The pattern `true` matches any constant 1: the rule must ask for the result's dtype.
// clang-format off
constexpr Rule kWhere[] = {
    rule("where-true",       where(true, x, y),                                x),
    rule("where-false",      where(false, x, y),                               y),
    rule("where-same",       where(y, x, x),                                   x),
    rule("where-not",        where(x ^ true, y, z),                            where(x, z, y)),
    rule("where-nested-yes", where(x, where(x, y, z), w),                      where(x, y, w)),
    rule("where-nested-no",  where(x, y, where(x, z, w)),                      where(x, y, w)),
    rule("where-both",       where(x, where(y, z, w), w),                      where(x & y, z, w)),
    rule("where-both-not", where(x, where(y, w, z), w), where(x & (y ^ true), z, w)),
    rule("where-either",     where(x, y, where(z, y, w)),                      where(x | z, y, w)),
    rule("where-bool",       bools(where(x, true, false)),                     x),
    rule("where-bool-not",   bools(where(x, false, true)),                     x ^ true),
    rule("where-and", where(x, y, false), x & y, when(is_bool(y))),
    rule("where-or", where(x, true, y), x | y, when(is_bool(y))),
    rule("where-and-not", where(x, false, y), (x ^ true) & y, when(is_bool(y))),
    rule("where-or-not", where(x, y, true), (x ^ true) | y, when(is_bool(y))),
    rule("where-add", where(x, c0, c1) + c2, where(x, c0 + c2, c1 + c2)),
    rule("where-mul", where(x, c0, c1) * c2, where(x, c0 * c2, c1 * c2)),
    rule("where-max", max(where(x, c0, c1), c2), where(x, max(c0, c2), max(c1, c2))),
    rule("where-div", where(x, c0, c1) / c2, where(x, c0 / c2, c1 / c2)),
    rule("where-mod", where(x, c0, c1) % c2, where(x, c0 % c2, c1 % c2)),
    rule("where-less", where(x, c0, c1) < c2, where(x, c0 < c2, c1 < c2)),
    rule("where-greater", c2 < where(x, c0, c1), where(x, c2 < c0, c2 < c1)),
    rule("where-equal", where(x, c0, c1) == c2, where(x, c0 == c2, c1 == c2)),
    rule("where-not-equal", where(x, c0, c1) != c2, where(x, c0 != c2, c1 != c2)),
    rule("where-neg",        -where(x, c0, c1),                                where(x, -c0, -c1)),
    rule("where-sum", where(x, y, c0) + where(x, z, c1), where(x, y + z, c0 + c1)),
    rule("where-sum-yes", where(x, c0, y) + where(x, c1, z), where(x, c0 + c1, y + z)),
    rule("where-gated-load", where(x, as(y, node(Op::Load, z, w, x, c0)), c0), y),
    rule("mul-by-bool", cast(x) * y, where(x, y, 0), when(is_bool(x) && is_int(y))),
    rule("mul-bool-const", cast(x) * c0, where(x, c0, c0 * 0), when(is_bool(x))),
};
// clang-format on
}  // namespace

std::span<const Rule> where_rules() {
  return kWhere;
}

}  // namespace plugrad
