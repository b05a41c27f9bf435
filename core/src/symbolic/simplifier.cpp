#include "symbolic/tables.h"

namespace plugrad {

const RuleTable& strict_table() {
  static const RuleTable table{constant_rules(), identity_rules(), boolean_rules(), where_rules(),
                               cast_rules(),     compare_rules(),  associativity_rules(), float_rules(),
                               index_rules()};
  return table;
}

const RuleTable& fast_table() { return strict_table(); }

struct Simplifier::State {
  Algebra algebra;
  Rewriter rewriter;
  State(Graph& g, RuleSet sets)
      : algebra(g),
        rewriter(g, sets == RuleSet::Fast ? fast_table() : strict_table(),
                 {.order = Order::ChildrenFirst, .fixpoint = true, .context = &algebra}) {}
};

Simplifier::Simplifier(Graph& graph, RuleSet sets) : state_(std::make_unique<State>(graph, sets)) {}
Simplifier::~Simplifier() = default;
Id Simplifier::operator()(Id root) { return state_->rewriter(root); }
Bounds& Simplifier::bounds() { return state_->algebra.bounds; }
const Rewriter& Simplifier::rewriter() const { return state_->rewriter; }

}  // namespace plugrad
