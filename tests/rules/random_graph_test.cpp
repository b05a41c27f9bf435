// Random graphs of all dtypes: simplification keeps their values and is idempotent.
#include <gtest/gtest.h>

#include <map>

#include "ir/text/printer.h"
#include "ir/verifier.h"
#include "rules/random_values.h"
#include "symbolic/symbolic.h"
#include "unit/symbolic/evaluate.h"

namespace plugrad {
namespace {

class RandomGraph {
 public:
  RandomGraph(Graph& g, testing::RandomValues& random) : g_(g), random_(random) {
    for (int i = 0; i < 3; ++i) numbers_[i] = random.dtype();
    for (int i = 0; i < 5; ++i) {
      const DType dtype = i == 0 ? DType::Bool : numbers_[i % 3];
      leaves_.push_back(i == 4 ? make_range(g, 1 + random.pick(9), 0, AxisKind::Loop)
                               : g.add(Op::Param, dtype, {}, g.list({i, 0, 1, 1})));
      nodes_.push_back(leaves_.back());
    }
  }
  const std::vector<Id>& leaves() const { return leaves_; }

  Id grow(int count) {
    for (int i = 0; i < count; ++i) nodes_.push_back(next());
    return nodes_.back();
  }

 private:
  // Mostly recent nodes, so that graphs get deep.
  Id any() {
    const int back =
        std::min<int>(random_.pick(random_.pick(6) + 1), static_cast<int>(nodes_.size()) - 1);
    return nodes_[nodes_.size() - 1 -
                  static_cast<size_t>(
                      random_.pick(3) ? back : random_.pick(static_cast<int>(nodes_.size())))];
  }
  Id any_of(DType dtype) {
    for (int i = 0; i < 8; ++i)
      if (const Id id = any(); g_[id].dtype == dtype) return id;
    if (random_.pick(2)) return g_.add(Op::Const, dtype, {}, random_.bits(dtype));
    if (dtype == DType::Bool) return compare();
    return g_.cast(any(), dtype);
  }
  Id compare() {
    const Op ops[] = {Op::CmpLt, Op::CmpEq, Op::CmpNe};
    const Id a = any();
    return g_.binary(random_.pick_of(ops), a, other(g_[a].dtype));
  }
  Id other(DType dtype) {
    return random_.pick(2) ? g_.add(Op::Const, dtype, {}, random_.bits(dtype)) : any_of(dtype);
  }
  Id next() {
    const Id a = any();
    const DType dtype = g_[a].dtype;
    const int choice = random_.pick(12);
    if (choice == 0) return compare();
    if (choice == 1) return g_.where(any_of(DType::Bool), a, any_of(dtype));
    if (choice == 2)
      return g_.cast(a, random_.pick(4) ? numbers_[random_.pick(3)] : random_.dtype());
    if (choice == 3 && dtype != DType::Bool) return g_.unary(Op::Neg, a);
    const Op floats[] = {Op::Add, Op::Sub, Op::Mul, Op::Max, Op::FDiv, Op::Mod, Op::Add, Op::Mul};
    const Op ints[] = {Op::Add,  Op::Sub, Op::Mul,      Op::Max,      Op::And, Op::Or, Op::Xor,
                       Op::IDiv, Op::Mod, Op::FloorDiv, Op::FloorMod, Op::Shl, Op::Shr};
    const Op bools[] = {Op::And, Op::Or, Op::Xor, Op::Max, Op::Mul};
    const Op op = is_float(dtype)        ? random_.pick_of(floats)
                  : dtype == DType::Bool ? random_.pick_of(bools)
                                         : random_.pick_of(ints);
    return random_.pick(4) ? g_.binary(op, a, other(dtype)) : g_.binary(op, other(dtype), a);
  }

  Graph& g_;
  testing::RandomValues& random_;
  DType numbers_[3];
  std::vector<Id> leaves_, nodes_;
};

// Index is unbounded in principle: a graph whose index arithmetic overflows has no defined value.
bool index_overflows(const Graph& g, Id root, const std::map<Id, uint64_t>& values) {
  testing::Evaluator evaluate(g);
  for (Id id = 0; id <= root; ++id) {
    if (g[id].dtype != DType::Index || values.contains(id) || g[id].op == Op::Const ||
        g[id].op == Op::Param)
      continue;
    const auto value = static_cast<int64_t>(evaluate.bits(id, values));
    if (value > (int64_t{1} << 31) || value < -(int64_t{1} << 31)) return true;
  }
  return false;
}

void check(Graph& g, Id before, Id after, const std::vector<Id>& leaves,
           testing::RandomValues& random) {
  testing::Evaluator evaluate(g);
  const DType dtype = g[before].dtype;
  for (int round = 0; round < 10; ++round) {
    std::map<Id, uint64_t> values;
    for (Id leaf : leaves) values[leaf] = random.of(g, leaf);
    if (index_overflows(g, before, values)) continue;
    const uint64_t a = evaluate.bits(before, values), b = evaluate.bits(after, values);
    const bool has_max = print(g, before).find("= max") != std::string::npos;
    if (!evaluate.defined() || testing::same_value(dtype, a, b)) continue;
    if (has_max && is_float(dtype))
      continue;  // the zero that max(-0, +0) takes may grow to an infinity
    std::string text;
    for (Id leaf : leaves)
      text +=
          " %" + std::to_string(leaf) + "=" + std::to_string(static_cast<int64_t>(values[leaf]));
    FAIL() << static_cast<int64_t>(a) << " became " << static_cast<int64_t>(b) << " for" << text
           << "\n"
           << print(g, before) << "became\n"
           << print(g, after);
  }
}

TEST(RandomGraphs, KeepTheirValues) {
  testing::RandomValues random(5);
  for (int round = 0; round < 6000; ++round) {
    Graph g;
    RandomGraph make(g, random);
    const Id before = make.grow(4 + random.pick(14));
    Simplifier simplify(g);
    const Id after = simplify(before);
    verify(g, after, Spec::Kernel, "after simplify");
    check(g, before, after, make.leaves(), random);
    ASSERT_EQ(simplify(after), after);
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

// The fast set may change values, but must end.
TEST(RandomGraphs, FastSetEnds) {
  testing::RandomValues random(6);
  for (int round = 0; round < 2000; ++round) {
    Graph g;
    RandomGraph make(g, random);
    const Id before = make.grow(4 + random.pick(14));
    verify(g, Simplifier(g, RuleSet::Fast)(before), Spec::Kernel, "after simplify");
  }
}

}  // namespace
}  // namespace plugrad
