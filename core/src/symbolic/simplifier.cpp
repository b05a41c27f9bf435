#include "symbolic/rules/tables.h"

namespace plugrad {

RuleTable table_of(RuleSet sets, std::initializer_list<std::span<const Rule>> more) {
  RuleTable table{constant_rules(), identity_rules(), boolean_rules(), where_rules(),
                  cast_rules(),     compare_rules(),  float_rules(),   associativity_rules(),
                  index_rules(),    validity_rules(), reduce_rules()};
  if (sets == RuleSet::Fast) table.append(fast_rules());
  for (const auto rules : more) table.append(rules);
  return table;
}

const RuleTable& simplifier_table(RuleSet sets) {
  static const RuleTable strict = table_of(RuleSet::Strict), fast = table_of(RuleSet::Fast);
  return sets == RuleSet::Fast ? fast : strict;
}

struct Simplifier::State {
  Algebra algebra;
  Rewriter rewriter;
  State(Graph& g, RuleSet sets)
      : algebra(g, sets),
        rewriter(g, simplifier_table(sets),
                 {.order = Order::ChildrenFirst, .fixpoint = true, .context = &algebra}) {}
};

Id collapse_reduces(Graph& graph, Id root, RuleSet sets) {
  static const RuleTable strict = table_of(RuleSet::Strict, {collapse_rules()});
  static const RuleTable fast = table_of(RuleSet::Fast, {collapse_rules()});
  Algebra algebra(graph, sets);
  const RuleTable& table = sets == RuleSet::Fast ? fast : strict;
  return rewrite(graph, root, table,
                 {.order = Order::ChildrenFirst, .fixpoint = true, .context = &algebra});
}

Simplifier::Simplifier(Graph& graph, RuleSet sets) : state_(std::make_unique<State>(graph, sets)) {}
Simplifier::~Simplifier() = default;
Id Simplifier::operator()(Id root) {
  return state_->rewriter(root);
}
Bounds& Simplifier::bounds() {
  return state_->algebra.bounds;
}
const Rewriter& Simplifier::rewriter() const {
  return state_->rewriter;
}

}  // namespace plugrad
