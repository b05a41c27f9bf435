// Casts without effect, and casts of casts. Integers wrap when cast to integers; floats saturate.
#include "ir/fold.h"
#include "symbolic/rules/tables.h"

namespace plugrad {
namespace {
using namespace rules;

struct FloatForm {
  int precision, max_exponent,
      min_exponent;  // bits of the significand; largest and smallest powers of two
  bool infinity;
};

FloatForm form_of(DType dtype) {
  switch (dtype) {
    case DType::F16:
      return {11, 15, -24, true};
    case DType::BF16:
      return {8, 127, -133, true};
    case DType::F32:
      return {24, 127, -149, true};
    case DType::F8E4M3:
      return {4, 8, -9, false};
    case DType::F8E5M2:
      return {3, 15, -16, true};
    default:
      return {53, 1023, -1074, true};
  }
}

bool integer_or_bool(DType dtype) {
  return is_integer(dtype) || dtype == DType::Bool;
}

// Narrowing wraps modulo 2^bits: only the last width counts.
bool narrows(DType through, DType to) {
  const auto bits = [](DType d) { return d == DType::Index ? 8u : size_of(d); };
  return is_integer(through) && is_integer(to) && bits(to) <= bits(through);
}

Id cast_of_cast(Graph& g, const Match& m) {
  Bounds& bounds = m.context<Algebra>().bounds;
  const Id inner = m[x];
  const DType from = g[inner].dtype, through = g[g[m.root].src[0]].dtype, to = g[m.root].dtype;
  if (integer_or_bool(from) && narrows(through, to)) return g.cast(inner, to);
  if (!keeps_values(g, inner, through, bounds)) return kNoMatch;
  // i8 -1 cast to f32 and to u8 saturates to 0; the direct cast wraps to 255.
  const bool saturates = integer_or_bool(from) && is_float(through) && is_integer(to);
  if (saturates && !keeps_values(g, inner, to, bounds)) return kNoMatch;
  return g.cast(inner, to);
}

Id cast_to_same(Graph& g, const Match& m) {
  return g[m[x]].dtype == g[m.root].dtype ? m[x] : kNoMatch;
}

// clang-format off
constexpr Rule kCasts[] = {
    rule("cast-to-same",       cast(x),                       code<cast_to_same>),
    rule("cast-of-cast",       cast(cast(x)),                 code<cast_of_cast>),
    rule("cast-to-bool",       of_class(cast(x), kBoolClass), x != 0),
    rule("cast-of-where",      cast(where(x, c0, c1)),        where(x, cast(c0), cast(c1))),
    rule("bitcast-to-same",    bitcast(x),                    code<cast_to_same>),
    rule("bitcast-of-bitcast", bitcast(bitcast(x)),           bitcast(x)),
};
// clang-format on
}  // namespace

bool keeps_values(const Graph& g, Id id, DType to, Bounds& bounds) {
  const DType from = g[id].dtype;
  if (from == to) return true;
  if (integer_or_bool(from)) {
    const Interval values = bounds[id];
    if (from == DType::U64 && values.hi == INT64_MAX) return false;
    if (is_float(to)) {
      const int64_t limit = int64_t{1} << std::min(form_of(to).precision, form_of(to).max_exponent);
      return -limit <= values.lo && values.hi <= limit;
    }
    const Interval all = dtype_interval(to);
    return all.lo <= values.lo && values.hi <= all.hi;
  }
  if (!is_float(from) || !is_float(to)) return false;
  const FloatForm a = form_of(from), b = form_of(to);
  return a.precision <= b.precision && a.max_exponent <= b.max_exponent &&
         a.min_exponent >= b.min_exponent && (b.infinity || !a.infinity);
}

std::span<const Rule> cast_rules() {
  return kCasts;
}

}  // namespace plugrad
