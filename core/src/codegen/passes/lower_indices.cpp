// Gives index arithmetic a machine dtype, i32 if every value fits and i64 otherwise, and turns
// floor division into truncating division.
//   before   (floordiv index %i, 8)      after   (shr i32 %i, 3)
// All indices of a kernel get the same dtype.
#include <bit>
#include <limits>

#include "codegen/passes/passes.h"
#include "ir/facts.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {
using namespace rules;

bool fits_i32(const Interval& v) {
  return v.lo >= std::numeric_limits<int32_t>::min() && v.hi <= std::numeric_limits<int32_t>::max();
}

// Bounds of the index arithmetic before it had the machine's dtype.
bool not_negative(const Graph& g, const Match& m) {
  Bounds& bounds = m.context<IndexLowering>().bounds;
  const Node& n = g[m.before];
  return bounds[n.src[0]].lo >= 0 && bounds[n.src[1]].lo >= 0;
}

bool power_of_two(const Graph& g, const Match& m) {
  return not_negative(g, m) && std::has_single_bit(static_cast<uint64_t>(const_int(g, m[c0])));
}

Id shift(Graph& g, const Match& m) {
  const auto divisor = static_cast<uint64_t>(const_int(g, m[c0]));
  return g.binary(Op::Shr, m[x], g.constant(g[m.root].dtype, int64_t{std::countr_zero(divisor)}));
}

// The truncated remainder differs from the floored one if it is not 0 and its sign is not that of
// b. For b = 0 the quotient is 0 and the remainder a in both.
struct Truncated {
  Id remainder, adjust;
};
Truncated truncated(Graph& g, Id a, Id b) {
  const Id zero = g.constant(g[a].dtype, int64_t{0});
  const Id remainder = g.binary(Op::Mod, a, b);
  const Id signs_differ = g.binary(Op::CmpLt, g.binary(Op::Xor, remainder, b), zero);
  const Id not_zero = g.binary(Op::CmpNe, b, zero);
  const Id adjust = g.binary(
      Op::And, g.binary(Op::And, signs_differ, g.binary(Op::CmpNe, remainder, zero)), not_zero);
  return {remainder, adjust};
}

Id adjusted_quotient(Graph& g, Id a, Id b) {
  const Id adjust = truncated(g, a, b).adjust, quotient = g.binary(Op::IDiv, a, b);
  const Id one = g.constant(g[a].dtype, int64_t{1});
  return g.where(adjust, g.binary(Op::Sub, quotient, one), quotient);
}

Id adjusted_remainder(Graph& g, Id a, Id b) {
  const Truncated t = truncated(g, a, b);
  return g.where(t.adjust, g.binary(Op::Add, t.remainder, b), t.remainder);
}

// clang-format off
constexpr Rule kIndices[] = {
    rule("floordiv-is-shift", x / c0, code<shift>,   when(check<power_of_two>)),
    rule("floormod-is-mask",  x % c0, x & (c0 + -1), when(check<power_of_two>)),
    rule("floordiv-is-idiv",  x / y,  idiv(x, y),    when(check<not_negative>)),
    rule("floormod-is-mod",   x % y,  imod(x, y),    when(check<not_negative>)),
    rule("floordiv-by-signs", x / y,  code_of_xy<adjusted_quotient>),
    rule("floormod-by-signs", x % y,  code_of_xy<adjusted_remainder>),
};
// clang-format on

// The node with the machine's dtype.
Id retyped(Graph& g, Id id, std::span<const Id> sources, RuleContext context) {
  const DType machine = context.get<IndexLowering>().machine;
  const Node& n = g[id];
  const DType type = n.dtype == DType::Index ? machine : n.dtype;
  if (n.op == Op::Scalar && n.dtype == DType::Index)
    return g.cast(g.add(n.op, DType::I32, {}, n.arg), machine);
  if (n.op == Op::Const)
    return n.dtype == DType::Index ? g.constant(machine, static_cast<int64_t>(n.arg)) : id;
  if (n.op == Op::Cast && g[sources[0]].dtype == type) return sources[0];
  return g.add(n.op, type, sources, n.arg);
}

}  // namespace

std::span<const Rule> index_lowering_rules() {
  return kIndices;
}

void lower_indices(Kernel& kernel) {
  static const RuleTable table(kIndices);
  IndexLowering lowering{Bounds(kernel.graph)};
  Reachable reachable;
  for (Id id : reachable.from(kernel.graph, std::span(&kernel.sink, 1)))
    if (kernel.graph[id].dtype == DType::Index && !fits_i32(lowering.bounds[id]))
      lowering.machine = DType::I64;
  kernel.sink =
      rewrite(kernel.graph, kernel.sink, table, {.context = &lowering, .rebuild = retyped});
  compact(kernel);
}

}  // namespace plugrad::codegen
