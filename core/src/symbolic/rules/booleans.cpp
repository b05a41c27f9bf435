// Bool algebra. "Not" is x ^ true; equality of bools is xor, their product is and, their maximum
// or.
#include "symbolic/rules/tables.h"

namespace plugrad {
namespace {
using namespace rules;

// not (x < c) is c - 1 < x for integers if c - 1 does not wrap.
Id negate_less_constant(Graph& g, const Match& m) {
  const DType dtype = g[m[x]].dtype;
  const int64_t c = const_int(g, m[c0]);
  const int64_t lowest = is_unsigned(dtype) ? 0 : dtype_interval(dtype).lo;
  if (c == lowest) return g.constant(DType::Bool, int64_t{1});
  return g.binary(Op::CmpLt, g.constant(dtype, c - 1), m[x]);
}

// not (c < x) is x < c + 1.
Id negate_constant_less(Graph& g, const Match& m) {
  const DType dtype = g[m[x]].dtype;
  const int64_t c = const_int(g, m[c0]);
  const int64_t highest = dtype == DType::U64 ? -1 : dtype_interval(dtype).hi;
  if (c == highest) return g.constant(DType::Bool, int64_t{1});
  return g.binary(Op::CmpLt, m[x], g.constant(dtype, c + 1));
}

// clang-format off
constexpr Rule kBooleans[] = {
    rule("bool-mul",        bools(x * y),            x & y),
    rule("bool-max",        bools(max(x, y)),        x | y),
    rule("bool-not-equal",  x != y,                  x ^ y,                      when(is_bool(x))),
    rule("bool-equal",      x == y,                  (x ^ y) ^ true,             when(is_bool(x))),
    rule("bool-less",       x < y,                   (x ^ true) & y,             when(is_bool(x))),
    rule("not-equal",       (x == y) ^ true,         x != y),
    rule("not-not-equal",   (x != y) ^ true,         x == y),
    rule("not-less-const",  (x < c0) ^ true,         code<negate_less_constant>, when(is_int(x))),
    rule("not-const-less",  (c0 < x) ^ true,         code<negate_constant_less>, when(is_int(x))),
    rule("not-less-index",  (x < y) ^ true,          y < x + 1,                  when(is_index(x))),
    rule("and-not-self",    (x ^ true) & x,          false,                      when(is_bool(x))),
    rule("or-not-self",     (x ^ true) | x,          true,                       when(is_bool(x))),
    rule("and-of-nots",     (x ^ true) & (y ^ true), (x | y) ^ true,             when(is_bool(x))),
    rule("or-of-nots",      (x ^ true) | (y ^ true), (x & y) ^ true,             when(is_bool(x))),
    rule("xor-of-nots",     (x ^ true) ^ (y ^ true), x ^ y,                      when(is_bool(x))),
    rule("xor-not-outward", (x ^ true) ^ y,          (x ^ y) ^ true,             when(is_bool(x))),
};
// clang-format on
}  // namespace

std::span<const Rule> boolean_rules() {
  return kBooleans;
}

}  // namespace plugrad
