#include "schedule/lower/contraction.h"

#include "ir/facts.h"

namespace plugrad::schedule {

bool must_not_contract(const Graph& g, Id sink) {
  const auto is_product = [&](Id id) { return g[id].op == Op::Mul && is_float(g[id].dtype); };
  bool rounds = false, adds_products = false, is_transcendental_too = false;
  Reachable reachable;
  for (Id id : reachable.from(g, std::span(&sink, 1))) {
    const Node& n = g[id];
    if (n.op == Op::Reduce && is_product(n.src[0])) return false;
    rounds |= n.op == Op::Trunc || (n.op == Op::Mod && is_float(n.dtype)) ||
              (n.op == Op::Bitcast && is_float(g[n.src[0]].dtype));
    is_transcendental_too |= is_transcendental(n.op);
    adds_products |=
        (n.op == Op::Add || n.op == Op::Sub) && is_product(n.src[0]) && is_product(n.src[1]);
  }
  return rounds || (adds_products && !is_transcendental_too);
}

}  // namespace plugrad::schedule
