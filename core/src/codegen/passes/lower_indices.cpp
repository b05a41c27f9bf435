// Index arithmetic takes a machine dtype: i32 where every value fits, i64 otherwise, and floor
// division becomes the truncating one (they agree where both operands are known not to be
// negative).
//   before   (floordiv index %i, 8)      after   (shr i32 %i, 3)
#include <bit>
#include <limits>

#include "codegen/passes/passes.h"
#include "ir/facts.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

bool fits_i32(const Interval& v) {
  return v.lo >= std::numeric_limits<int32_t>::min() && v.hi <= std::numeric_limits<int32_t>::max();
}

struct IndexLowering {
  Kernel& kernel;
  Graph& g = kernel.graph;
  Bounds bounds{g};
  DType machine = DType::I32;
  std::vector<Id> now = std::vector<Id>(kernel.sink + 1, kNoId);

  DType dtype(Id id) const { return g[id].dtype == DType::Index ? machine : g[id].dtype; }

  // Quotient or remainder with floor semantics, of operands `a` and `b` whose bounds are those of
  // `node`'s sources.
  Id floor_op(Id node, Id a, Id b) {
    const Interval va = bounds[g[node].src[0]], vb = bounds[g[node].src[1]];
    const DType type = dtype(node);
    const bool division = g[node].op == Op::FloorDiv;
    if (va.lo >= 0 && vb.lo >= 0) {
      if (is_const(g, b) && std::has_single_bit(static_cast<uint64_t>(const_int(g, b)))) {
        const int64_t c = const_int(g, b);
        return division
                   ? g.add(
                         Op::Shr, type,
                         {a, g.constant(type, int64_t{std::countr_zero(static_cast<uint64_t>(c))})})
                   : g.add(Op::And, type, {a, g.constant(type, c - 1)});
      }
      return g.add(division ? Op::IDiv : Op::Mod, type, {a, b});
    }
    return signed_floor_op(division, type, a, b);
  }

  // The truncated remainder differs from the floored one exactly when it is not 0 and its sign is
  // not b's. For b = 0 the quotient is 0 and the remainder a in both.
  Id signed_floor_op(bool division, DType type, Id a, Id b) {
    const Id zero = g.constant(type, int64_t{0});
    const Id remainder = g.add(Op::Mod, type, {a, b});
    const Id signs_differ = g.binary(Op::CmpLt, g.add(Op::Xor, type, {remainder, b}), zero);
    const Id not_zero = g.binary(Op::CmpNe, b, zero);
    const Id adjust = g.binary(
        Op::And, g.binary(Op::And, signs_differ, g.binary(Op::CmpNe, remainder, zero)), not_zero);
    if (division) {
      const Id quotient = g.add(Op::IDiv, type, {a, b});
      return g.where(adjust, g.add(Op::Sub, type, {quotient, g.constant(type, int64_t{1})}),
                     quotient);
    }
    return g.where(adjust, g.binary(Op::Add, remainder, b), remainder);
  }

  Id lower(Id id) {
    const Node& n = g[id];
    if (n.op == Op::Scalar) return g.cast(g.add(n.op, DType::I32, {}, n.arg), machine);
    if (n.op == Op::Const)
      return n.dtype == DType::Index ? g.constant(machine, static_cast<int64_t>(n.arg)) : id;
    std::vector<Id> sources;
    for (Id s : g.sources(n)) sources.push_back(now[s]);
    if (n.op == Op::FloorDiv || n.op == Op::FloorMod) return floor_op(id, sources[0], sources[1]);
    const DType type = dtype(id);
    if (n.op == Op::Cast && g[sources[0]].dtype == type) return sources[0];
    return g.add(n.op, type, sources, n.arg);
  }
};

}  // namespace

void lower_indices(Kernel& kernel) {
  IndexLowering lowering{kernel};
  Reachable reachable;
  const std::vector<Id> nodes = reachable.from(kernel.graph, std::span(&kernel.sink, 1));
  for (Id id : nodes)
    if (kernel.graph[id].dtype == DType::Index && !fits_i32(lowering.bounds[id]))
      lowering.machine = DType::I64;
  for (Id id : nodes) lowering.now[id] = lowering.lower(id);
  kernel.sink = lowering.now[kernel.sink];
  compact(kernel);
}

}  // namespace plugrad::codegen
