// Random chains of views: simplification keeps their elements, and every row of the table applies.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "ir/text/printer.h"
#include "oracle/evaluator.h"
#include "rewrite/trace.h"
#include "schedule/tensor_builder.h"

namespace plugrad::schedule {
namespace {

using DimList = TensorBuilder::Dims;

struct Chain {
  std::mt19937& random;
  Graph g{};
  Shapes shapes{g};
  TensorBuilder build{g, shapes, RuleSet::Strict};
  oracle::Array leaf{DType::F32, {}, {}};
  Id plain = kNoId, simple = kNoId;

  int64_t pick(int64_t below) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(below));
  }
  DimList shape() { return build.shape(plain); }

  // Occasionally of zeros only, or empty.
  void begin() {
    leaf.shape = {1 + pick(3), pick(8) == 0 ? 0 : 1 + pick(3), 1 + pick(2)};
    for (int64_t i = 0; i < element_count(leaf.shape); ++i)
      leaf.bits.push_back(bits_of(static_cast<double>(i + 1), DType::F32));
    DimList list = {1, 1};
    list.insert(list.end(), leaf.shape.begin(), leaf.shape.end());
    plain = simple = g.add(Op::Buffer, DType::F32, {}, g.list(list));
    if (pick(8) != 0) return;
    plain = simple = build.zeros(DType::F32, leaf.shape);
  }
  void step() {
    const Op ops[] = {Op::Reshape, Op::Permute, Op::Expand, Op::Pad,
                      Op::Shrink,  Op::Flip,    Op::Reduce};
    const Op op = ops[pick(7)];
    const DimList values = arguments(op);
    plain = g.add(op, DType::F32, {plain}, g.list(values));
    simple = op == Op::Reduce ? build.reduce(Op::Add, simple, {values.begin() + 1, values.end()})
                              : moved(op, values);
  }
  Id moved(Op op, const DimList& values) {
    switch (op) {
      case Op::Reshape:
        return build.reshape(simple, values);
      case Op::Permute:
        return build.permute(simple, values);
      case Op::Expand:
        return build.expand(simple, values);
      case Op::Pad:
        return build.pad(simple, values);
      case Op::Shrink:
        return build.shrink(simple, values);
      default:
        return build.flip(simple, values);
    }
  }
  DimList arguments(Op op) {
    DimList of = shape(), out;
    const size_t rank = of.size();
    if (op == Op::Reduce) out.push_back(static_cast<int64_t>(Op::Add));
    for (size_t i = 0; i < rank; ++i) {
      if (op == Op::Reduce && pick(2)) out.push_back(static_cast<int64_t>(i));
      if (op == Op::Permute) out.push_back(static_cast<int64_t>(i));
      if (op == Op::Expand) out.push_back(of[i] == 1 ? 1 + pick(3) : of[i]);
      if (op == Op::Pad) out.insert(out.end(), {pick(2), pick(2)});
      if (op == Op::Flip) out.push_back(pick(2));
      if (op == Op::Shrink) {
        const int64_t begin = of[i] == 0 ? 0 : pick(of[i]);
        out.insert(out.end(), {begin, begin + (of[i] == 0 ? 0 : 1 + pick(of[i] - begin))});
      }
    }
    if (op == Op::Permute) std::ranges::shuffle(out, random);
    if (op == Op::Reshape) {
      out = of;
      std::ranges::shuffle(out, random);
    }
    return out;
  }
};

TEST(Views, InTheirSimplestFormHaveTheirElements) {
  std::mt19937 random(3);
  RewriteTrace trace;
  TraceScope scope(trace);
  for (int round = 0; round < 3000; ++round) {
    Chain chain{random};
    chain.begin();
    for (int64_t i = 0; i < 6 && element_count(chain.shape()) < 500; ++i) chain.step();
    const Id both[] = {chain.plain, chain.simple};
    ASSERT_EQ(chain.shapes.id(chain.plain), chain.shapes.id(chain.simple));
    const auto values = oracle::evaluate(chain.g, both, [&](Id) { return chain.leaf; });
    ASSERT_EQ(values[0].size(), values[1].size());
    for (size_t i = 0; i < values[0].size(); ++i)
      ASSERT_EQ(values[0].real(i), values[1].real(i)) << print(chain.g, chain.plain) << "became\n"
                                                      << print(chain.g, chain.simple);
  }
  std::set<std::string> applied;
  for (const TraceEvent& event : trace.events) applied.insert(event.rule->name);
  for (const Rule& rule : view_rules()) EXPECT_TRUE(applied.contains(rule.name)) << rule.name;
}

}  // namespace
}  // namespace plugrad::schedule
