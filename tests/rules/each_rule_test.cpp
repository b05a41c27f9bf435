// Every rule alone: its left side is built with random dtypes, constants and sources; the result of
// the rule must have the same value for random values of the sources.
#include <gtest/gtest.h>

#include <map>

#include "ir/text/printer.h"
#include "ir/verifier.h"
#include "plugrad/error.h"
#include "rules/random_values.h"
#include "symbolic/rules/tables.h"
#include "unit/symbolic/evaluate.h"

namespace plugrad {
namespace {

/// Builds instances of patterns.
class Instance {
 public:
  Instance(Graph& g, testing::RandomValues& random) : g_(g), random_(random) {}

  Id build(const Pattern& p, int at, DType wanted) {
    const PatternNode& n = p.nodes[at];
    if (n.name != kNoName && bound_.contains(n.name)) return bound_[n.name];
    const Id id = make(p, n, wanted);
    if (n.name != kNoName) bound_[n.name] = id;
    return id;
  }
  const std::vector<Id>& leaves() const { return leaves_; }

 private:
  // Bounded and unbounded things, and now and then a constant.
  Id leaf(DType dtype) {
    const int kind = random_.pick(8);
    if (kind == 0) return g_.add(Op::Const, dtype, {}, random_.bits(dtype));
    if (dtype == DType::Index && kind < 5) return kind == 1 ? row_major() : range();
    if (is_integer(dtype) && kind < 5) return g_.cast(range(), dtype);
    const Id id =
        g_.add(Op::Param, dtype, {}, g_.list({static_cast<int64_t>(leaves_.size()), 0, 1, 1}));
    leaves_.push_back(id);
    return id;
  }
  Id range() {
    const auto axis = static_cast<uint32_t>(leaves_.size());
    leaves_.push_back(make_range(g_, 1 + random_.pick(6), axis, AxisKind::Loop));
    return leaves_.back();
  }
  Id row_major() {
    const Id outer = range(), inner = range();
    return g_.binary(Op::Add, g_.binary(Op::Mul, outer, g_.index(1 + random_.pick(8))), inner);
  }
  Id make(const Pattern& p, const PatternNode& n, DType wanted) {
    switch (n.kind) {
      case PatternKind::Name:
        return leaf(wanted);
      case PatternKind::Constant:
        return g_.add(Op::Const, wanted, {}, random_.bits(wanted));
      case PatternKind::Literal:
        return n.float_literal ? g_.constant(wanted, std::bit_cast<double>(n.literal))
                               : g_.constant(wanted, static_cast<int64_t>(n.literal));
      case PatternKind::OpAny:
        return node(
            n.op, wanted, [&](int, DType dtype) { return leaf(dtype); }, op_info(n.op).min_sources);
      default:
        return node(
            n.op, wanted, [&](int i, DType dtype) { return build(p, n.child[i], dtype); },
            n.child_count);
    }
  }
  template <class Source>
  Id node(Op op, DType wanted, Source source, int count) {
    std::vector<Id> sources;
    const DType operand =
        is_compare(op) || op == Op::Cast || op == Op::Bitcast ? random_.dtype() : wanted;
    for (int i = 0; i < count; ++i)
      sources.push_back(source(i, op == Op::Where && i == 0 ? DType::Bool : operand));
    return g_.add(op, is_compare(op) ? DType::Bool : wanted, sources);
  }

  Graph& g_;
  testing::RandomValues& random_;
  std::map<uint8_t, Id> bound_;
  std::vector<Id> leaves_;
};

bool well_formed(Graph& g, Id id) {
  try {
    verify(g, id, Spec::Kernel);
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool contains_max(const Graph& g, Id id) {
  return print(g, id).find("= max") != std::string::npos;
}

// Index arithmetic is defined where it does not overflow; the rule may then do anything.
std::string check_values(Graph& g, const Rule& rule, Id before, Id after,
                         const std::vector<Id>& leaves, testing::RandomValues& random) {
  testing::Evaluator evaluate(g);
  const DType dtype = g[before].dtype;
  for (int round = 0; round < 12; ++round) {
    std::map<Id, uint64_t> values;
    for (Id leaf : leaves) values[leaf] = random.of(g, leaf);
    const uint64_t a = evaluate.bits(before, values), b = evaluate.bits(after, values);
    if (!evaluate.defined()) return "";
    if (testing::same_value(dtype, a, b)) continue;
    if (testing::both_zero(dtype, a, b) && contains_max(g, before))
      continue;  // max(-0, +0) may be either
    std::string text;
    for (Id leaf : leaves)
      text +=
          " %" + std::to_string(leaf) + "=" + std::to_string(static_cast<int64_t>(values[leaf]));
    return std::string(rule.name) + ": " + std::to_string(static_cast<int64_t>(a)) + " became " +
           std::to_string(static_cast<int64_t>(b)) + " for" + text + "\n" + print(g, before) +
           "became\n" + print(g, after);
  }
  return "";
}

// Returns how often the rule applied.
int exercise(const Rule& rule, unsigned seed, int rounds) {
  const RuleTable table(std::span(&rule, 1));
  testing::RandomValues random(seed);
  int hits = 0;
  for (int round = 0; round < rounds && hits < 60; ++round) {
    Graph g;
    Instance instance(g, random);
    const bool compares = is_compare(rule.left.root().op);
    const Id before =
        instance.build(rule.left, rule.left.count - 1, compares ? DType::Bool : random.dtype());
    if (!well_formed(g, before)) continue;
    Algebra algebra(g, RuleSet::Strict);
    uint32_t number;
    const Id after = table.apply(g, before, &algebra, number);
    if (after == kNoMatch) continue;
    ++hits;
    EXPECT_TRUE(well_formed(g, after)) << rule.name << "\n" << print(g, after);
    const std::string wrong = check_values(g, rule, before, after, instance.leaves(), random);
    EXPECT_EQ(wrong, "");
    if (!wrong.empty()) return hits;
  }
  return hits;
}

bool about_memory_or_loops(const Rule& rule) {
  for (int i = 0; i < rule.left.count; ++i) {
    const PatternNode& n = rule.left.nodes[i];
    const bool is_op = n.kind == PatternKind::Op || n.kind == PatternKind::OpAny;
    if (is_op && !is_alu(n.op)) return true;
  }
  return false;
}

TEST(EachRule, KeepsTheValue) {
  const RuleTable& table = simplifier_table(RuleSet::Strict);
  std::string idle;
  for (uint32_t i = 0; i < table.size(); ++i) {
    if (about_memory_or_loops(table[i])) continue;
    const int hits = exercise(table[i], 100 + i, 4000);
    if (hits == 0) idle += std::string(" ") + table[i].name;
  }
  EXPECT_EQ(idle, "") << "these rules never applied";
}

}  // namespace
}  // namespace plugrad
