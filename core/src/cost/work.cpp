#include "cost/work.h"

#include <algorithm>

namespace plugrad::cost {
namespace {

/// Whether the op makes positions of positions. Shifts and exclusive ors make random numbers.
bool keeps_positions(Op op) {
  switch (op) {
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Neg:
    case Op::Max:
    case Op::IDiv:
    case Op::Mod:
    case Op::FloorDiv:
    case Op::FloorMod:
    case Op::And:
    case Op::Or:
    case Op::Cast:
      return true;
    default:
      return is_compare(op) || is_movement(op);
  }
}

}  // namespace

uint32_t op_weight(const Graph& g, const Node& n) {
  const CostFacts& cost = cost_facts(op_info(n.op).cost);
  return n.src_count == 2 && is_number(g, n.src[1]) ? cost.weight_by_constant : cost.weight;
}

bool CountedWeights::is_position(Id id) {
  while (positions_.size() <= id) {
    const Node& n = graph_[static_cast<Id>(positions_.size())];
    const bool is_leaf = n.op == Op::Range || n.op == Op::Iota || n.op == Op::Const ||
                         (n.op == Op::Scalar && n.dtype == DType::Index);
    const auto is_known = [&](Id s) { return positions_[s] != 0; };
    positions_.push_back(
        !is_float(n.dtype) &&
        (is_leaf || (keeps_positions(n.op) && std::ranges::all_of(graph_.sources(n), is_known))));
  }
  return positions_[id] != 0;
}

uint32_t CountedWeights::operator[](Id id) {
  const Node& n = graph_[id];
  if (!is_alu(n.op) || n.op == Op::Cast || n.op == Op::Bitcast || n.dtype == DType::Index) return 0;
  if (n.dtype == DType::Bool && is_position(id)) return 0;
  if (n.op == Op::Where && is_position(n.src[0])) return 0;
  return op_weight(graph_, n);
}

}  // namespace plugrad::cost
