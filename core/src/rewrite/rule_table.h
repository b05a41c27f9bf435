// Rules compiled for matching: sorted by root op, with both operand orders of commutative ops.
#pragma once

#include <initializer_list>
#include <vector>

#include "rewrite/rule.h"

namespace plugrad {

/// Operand orders in which commutative ops match.
enum class Operands : uint8_t { AnyOrder, AsWritten };

/// Construct it once for each rule set (`static const RuleTable table{kAlgebra, kIndex}`) and share
/// it between threads. Rules are tried in the given order.
class RuleTable {
 public:
  explicit RuleTable(std::span<const Rule> rules, Operands operands = Operands::AnyOrder)
      : operands_(operands) {
    append(rules);
  }
  RuleTable(std::initializer_list<std::span<const Rule>> tables) {
    for (auto table : tables) append(table);
  }

  /// Appends rules; not while other threads use the table.
  void append(std::span<const Rule> rules);

  /// Applies the first rule that matches `id`. Returns the replacement and sets `rule` to the
  /// rule's number; kNoMatch if none applies or the result is `id`. `before` is Match::before;
  /// default: `id`.
  Id apply(Graph& g, Id id, RuleContext context, uint32_t& rule, Id before = kNoId) const;
  /// The first rule whose left side and guard hold for `id` and that is not switched off, with its
  /// bindings; null for none. `match.rule` is then one that would apply but is switched off, or null.
  const Rule* find(const Graph& g, Id id, RuleContext context, Match& match) const;

  const Rule& operator[](uint32_t number) const { return *rules_[number]; }
  uint32_t size() const { return static_cast<uint32_t>(rules_.size()); }

 private:
  // One check, in preorder of the pattern; check 0 is the root.
  struct Check {
    PatternKind kind;
    Op op;
    uint8_t name, classes;
    uint8_t parent, child;  // the node is source `child` of the node of check `parent`
    uint8_t src_count;
    bool open, float_literal, repeated;  // repeated: an earlier check binds the name
    uint64_t literal;
  };
  struct Variant {
    uint64_t need;  // bits of src_ops that a node must have
    uint32_t first_check, check_count, rule;
  };

  void add_variant(const Pattern& left, uint32_t rule);
  void add_orders(Pattern left, int at, uint32_t rule);
  bool match(const Graph& g, const Variant& variant, Match& m) const;
  void add_to_lists(const Variant& variant, const PatternNode& root);
  bool is_listed(const Variant& variant, Op op) const;

  Operands operands_ = Operands::AnyOrder;
  std::vector<const Rule*> rules_;
  std::vector<Check> checks_;
  std::vector<Variant> by_op_[256];
};

/// Makes the nodes of a right side; the default folds constants.
using MakeNode = Id (*)(Graph&, Op, DType, std::span<const Id>);

/// Builds a right side.
Id build(Graph& g, const Pattern& pattern, const Match& m);
/// Builds source `source` of the root of a right side, with dtype `wanted` unless it has one.
Id build_source(Graph& g, const Pattern& pattern, int source, const Match& m, DType wanted,
                MakeNode make);
/// Whether a guard holds.
bool holds(const Graph& g, const RuleGuard& guard, const Match& m);

}  // namespace plugrad
