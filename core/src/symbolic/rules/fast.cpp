// The opt-in rules `fast`, which treat floats as real numbers. Last bits may differ, -0 may become
// +0, NaN and infinity may vanish.
#include <numbers>

#include "symbolic/reduction.h"
#include "symbolic/rules/tables.h"

namespace plugrad {
namespace {
using namespace rules;

// x / c is x * (1 / c).
Id divide_by_constant(Graph& g, const Match& m) {
  const double divisor = const_float(g, m[c0]);
  const DType dtype = g[m.root].dtype;
  return divisor == 0 ? kNoMatch : g.binary(Op::Mul, m[x], g.constant(dtype, 1.0 / divisor));
}

// Fewer operations where a device has exp2 and log2, and products with constants join.
constexpr Pattern kLog2E = std::numbers::log2e, kLn2 = std::numbers::ln2;

// clang-format off
constexpr Rule kFast[] = {
    rule("fast-add-zero",      x + 0.0,             x),
    rule("fast-mul-zero",      x * 0.0,             0.0,            when(is_float(x))),
    rule("fast-sub-self",      x - x,               0.0,            when(is_float(x))),
    rule("fast-div-self",      fdiv(x, x),          1.0),
    rule("fast-mul-recip",     x * recip(x),        1.0),
    rule("fast-div-const",     fdiv(x, c0),         code<divide_by_constant>),
    rule("fast-recip-recip",   recip(recip(x)),     x),
    rule("fast-recips",        recip(x) * recip(y), recip(x * y)),
    rule("fast-sqrt-squared",  sqrt(x) * sqrt(x),   x),
    rule("fast-exp",           exp(x),              exp2(x * kLog2E)),
    rule("fast-log",           log(x),              log2(x) * kLn2),
    rule("fast-pow",           pow(x, y),           exp2(y * log2(x))),
    rule("fast-log-exp",       log2(exp2(x)),       x),
    rule("fast-exp-log",       exp2(log2(x)),       x),
    rule("fast-exps",          exp2(x) * exp2(y),   exp2(x + y)),
    rule("fast-add-constants", (x + c0) + c1,       x + (c0 + c1),  when(is_float(x))),
    rule("fast-mul-constants", (x * c0) * c1,       x * (c0 * c1),  when(is_float(x))),
    rule("fast-add-outward",   (x + c0) + y,        (x + y) + c0,   when(is_float(x))),
    rule("fast-mul-outward",   (x * c0) * y,        (x * y) * c0,   when(is_float(x))),
    rule("fast-add-self",      x + x,               x * 2.0,        when(is_float(x))),
    rule("fast-add-term",      x * c0 + x,          x * (c0 + 1.0), when(is_float(x))),
    rule("fast-add-terms",     x * c0 + x * c1,     x * (c0 + c1),  when(is_float(x))),
    rule("fast-factor-out",    x * y + x * z,       x * (y + z),    when(is_float(x))),
    rule("fast-bool-product", cast(x) * y, where(x, y, 0.0), when(is_bool(x) && is_float(y))),
};
// clang-format on
}  // namespace

std::span<const Rule> fast_rules() {
  return kFast;
}

}  // namespace plugrad
