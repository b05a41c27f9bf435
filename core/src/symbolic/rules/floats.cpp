// Float identities that keep every IEEE result, signed zeros, infinities and NaN included.
//   not here: x + 0 -> x (-0 + 0 is +0), x * 0 -> 0 (inf), x - x -> 0 (inf), x / x -> 1 (NaN)
#include <cmath>

#include "ir/kernel_ast.h"
#include "symbolic/rules/tables.h"

namespace plugrad {
namespace {
using namespace rules;

// x / 2^k and x * 2^-k round the same real number if 2^-k is a normal number.
Id divide_by_power(Graph& g, const Match& m) {
  const double divisor = const_float(g, m[c0]);
  int exponent;
  const DType dtype = g[m.root].dtype;
  if (std::fabs(std::frexp(divisor, &exponent)) != 0.5) return kNoMatch;
  const int lowest = dtype == DType::F64                           ? -1021
                     : dtype == DType::F32 || dtype == DType::BF16 ? -125
                                                                   : -13;
  if (dtype == DType::F8E4M3 || dtype == DType::F8E5M2 || 2 - exponent < lowest ||
      exponent < lowest)
    return kNoMatch;
  return g.binary(Op::Mul, m[x], g.constant(dtype, 1.0 / divisor));
}

// A number that a launch gives is finite and not 0, 1 or -1 (engine/numbers/number_sites.cpp).
Id negated(Graph& g, Id scalar) {
  return make_scalar(g, scalar_number(g, scalar), g[scalar].dtype, !is_negated(g, scalar));
}
Id negated_scalar(Graph& g, const Match& m) {
  return g[m[y]].dtype == DType::Index ? kNoMatch : negated(g, m[y]);
}
Id add_negated(Graph& g, const Match& m) {
  return g.binary(Op::Add, m[x], negated(g, m[y]));
}
Id times_negated(Graph& g, const Match& m) {
  return g.binary(Op::Mul, m[x], negated(g, m[y]));
}
constexpr Pattern scalar = any_of(y, Op::Scalar);

bool is_float_of_int(const Graph& g, const Match& m) {
  return is_integer(g[m[x]].dtype);
}

// clang-format off
constexpr Rule kFloats[] = {
    rule("float-add-minus-zero", x + -0.0,                 x,       when(is_float(x))),
    rule("float-sub-zero",       x - 0.0,                  x,       when(is_float(x))),
    rule("float-mul-minus-one",  x * -1.0,                 -x,      when(is_float(x))),
    rule("float-neg-neg",        -(-x),                    x,       when(is_float(x))),
    rule("float-neg-mul",        -(x * c0),                x * -c0, when(is_float(x))),
    rule("float-mul-neg",        (-x) * c0,                x * -c0, when(is_float(x))),
    rule("float-mul-negs",       (-x) * (-y),              x * y,   when(is_float(x))),
    rule("float-sub-neg",        x - (-y),                 x + y,   when(is_float(x))),
    rule("float-add-neg",        x + (-y),                 x - y,   when(is_float(x))),
    rule("float-neg-sub-const",  x - c0,                   x + -c0, when(is_float(x))),
    rule("scalar-is-no-nan",     scalar != scalar,         false),
    rule("neg-scalar",           -scalar,                  code<negated_scalar>),
    rule("float-neg-mul-scalar", -(x * scalar),            code<times_negated>, when(is_float(x))),
    rule("float-mul-neg-scalar", (-x) * scalar,            code<times_negated>, when(is_float(x))),
    rule("float-sub-scalar",     x - scalar,               code<add_negated>,   when(is_float(x))),
    rule("float-div-one",        fdiv(x, 1.0),             x),
    rule("float-div-power",      fdiv(x, c0),              code<divide_by_power>),
    rule("float-one-over",       fdiv(1.0, x),             recip(x)),
    rule("float-max-lowest",     max(x, -__builtin_inf()), x,       when(is_float(x))),
    rule("float-trunc-trunc",    trunc(trunc(x)),          trunc(x)),
    rule("float-trunc-of-int",   trunc(as(y, cast(x))),    y,       when(check<is_float_of_int>)),
};
// clang-format on
}  // namespace

std::span<const Rule> float_rules() {
  return kFloats;
}

}  // namespace plugrad
