// Rules prepared for matching: sorted by root op, both orders of commutative ops spelled out.
#pragma once

#include <initializer_list>
#include <vector>

#include "rewrite/rule.h"

namespace plugrad {

/// In which orders the operands of commutative ops are matched.
enum class Operands : uint8_t { AnyOrder, AsWritten };

/// Made once a rule set (`static const RuleTable table{kAlgebra, kIndex}`), then shared by any
/// threads. Rules are tried in the order in which they were given.
class RuleTable {
 public:
  explicit RuleTable(std::span<const Rule> rules, Operands operands = Operands::AnyOrder)
      : operands_(operands) {
    append(rules);
  }
  RuleTable(std::initializer_list<std::span<const Rule>> tables) {
    for (auto table : tables) append(table);
  }

  /// Adds rules behind those given before; not while others use the table.
  void append(std::span<const Rule> rules);

  /// Applies the first rule that matches `id`. Returns the node that takes its place and sets
  /// `rule` to the rule's number; kNoMatch when none applies or the result is `id` itself.
  /// `before` is Match::before, `id` itself when not given.
  Id apply(Graph& g, Id id, RuleContext context, uint32_t& rule, Id before = kNoId) const;
  /// The first rule whose left side and guard hold for `id`, and what its names stand for; null for
  /// none.
  const Rule* find(const Graph& g, Id id, RuleContext context, Match& match) const;

  const Rule& operator[](uint32_t number) const { return *rules_[number]; }
  uint32_t size() const { return static_cast<uint32_t>(rules_.size()); }

 private:
  // One thing to check, in the order of a walk through the pattern; step 0 is the root.
  struct Step {
    PatternKind kind;
    Op op;
    uint8_t name, classes;
    uint8_t parent, child;  // this node is source `child` of the node of step `parent`
    uint8_t src_count;
    bool open, float_literal, repeated;  // repeated: the name is bound by an earlier step
    uint64_t literal;
  };
  struct Variant {
    uint64_t need;  // src_ops bits that a node must have
    uint32_t first_step, step_count, rule;
  };

  void add_variant(const Pattern& left, uint32_t rule);
  void add_orders(Pattern left, int at, uint32_t rule);
  bool match(const Graph& g, const Variant& variant, Match& m) const;
  void add_to_lists(const Variant& variant, const PatternNode& root);
  bool is_listed(const Variant& variant, Op op) const;

  Operands operands_ = Operands::AnyOrder;
  std::vector<const Rule*> rules_;
  std::vector<Step> steps_;
  std::vector<Variant> by_op_[256];
};

/// How a right side makes its nodes; the default folds constants.
using MakeNode = Id (*)(Graph&, Op, DType, std::span<const Id>);

/// The node that a right side stands for.
Id build(Graph& g, const Pattern& pattern, const Match& m);
/// The node that source `source` of the root of a right side stands for, of dtype `wanted` where
/// nothing else says it.
Id build_source(Graph& g, const Pattern& pattern, int source, const Match& m, DType wanted,
                MakeNode make);
/// Whether a guard holds.
bool holds(const Graph& g, const RuleGuard& guard, const Match& m);

}  // namespace plugrad
