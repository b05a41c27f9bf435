// Ops that the device does not claim for a dtype become ops that it does.
//   before   exp2 f32 %x        after   a polynomial, where the device has no exp2
#include "base/check.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/transcendental.h"
#include "uop/facts.h"

namespace plugrad::codegen {
namespace {

bool claims(const pgr_device_caps& caps, Op op, DType dtype) {
  const auto number = static_cast<size_t>(op);
  return number < 64 && (caps.op_dtypes[number] >> static_cast<size_t>(dtype) & 1) != 0;
}

// What a node becomes; itself when the device claims it. Results are looked at again.
Id rewrite_once(Graph& g, Id id, const pgr_device_caps& caps) {
  const Node& n = g[id];
  if (!is_alu(n.op)) return id;
  const DType dtype = is_compare(n.op) || n.op == Op::Cast ? g[n.src[0]].dtype : n.dtype;
  if (claims(caps, n.op, dtype)) return id;
  switch (n.op) {
    case Op::Exp2: return make_exp2(g, n.src[0]);
    case Op::Log2: return make_log2(g, n.src[0]);
    case Op::Recip: return g.binary(Op::FDiv, g.constant(dtype, 1.0), n.src[0]);
    case Op::FDiv: return g.binary(Op::Mul, n.src[0], g.unary(Op::Recip, n.src[1]));
    case Op::Sub: return g.binary(Op::Add, n.src[0], g.unary(Op::Neg, n.src[1]));
    default: return id;
  }
}

}  // namespace

void decompose(Kernel& kernel) {
  Graph& g = kernel.graph;
  Reachable reachable;
  const std::vector<Id> nodes = reachable.from(g, std::span(&kernel.sink, 1));
  std::vector<Id> now(kernel.sink + 1, kNoId), sources;
  for (Id id : nodes) {
    sources.clear();
    for (Id s : g.sources(id)) sources.push_back(now[s]);
    now[id] = rewrite_once(g, g.with_sources(id, sources), *kernel.caps);
  }
  kernel.sink = now[kernel.sink];
  compact(kernel);
}

}  // namespace plugrad::codegen
