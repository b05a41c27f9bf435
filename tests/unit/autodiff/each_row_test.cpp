// Every row of the derivative table against finite differences, at random points.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <string>

#include "autodiff/rules.h"
#include "graph_fixture.h"
#include "rewrite/trace.h"

namespace plugrad::autodiff {
namespace {

struct EachRow : GraphFixture {
  std::mt19937 random{11};
  std::set<std::string> applied;

  double value() { return 0.25 + static_cast<double>(random() % 1000) / 400; }
  Id leaf(std::vector<int64_t> shape) {
    int64_t count = element_count(shape);
    std::vector<double> numbers;
    for (int64_t i = 0; i < count; ++i) numbers.push_back(value());
    return buffer(std::move(shape), numbers);
  }
  double sum_of(Id y) {
    double sum = 0;
    for (double v : values(y)) sum += v;
    return sum;
  }

  /// d sum(y) / d each element of each leaf.
  void check(Id y, const std::vector<Id>& of) {
    RewriteTrace trace;
    std::vector<Id> found;
    {
      TraceScope scope(trace);
      found = gradient(context, y, number(1), of);
    }
    for (const TraceEvent& event : trace.events) applied.insert(event.rule->name);
    for (size_t k = 0; k < of.size(); ++k) {
      ASSERT_NE(found[k], kNoId);
      const std::vector<double> slopes = values(found[k]);
      for (size_t i = 0; i < slopes.size(); ++i)
        EXPECT_NEAR(slopes[i], difference(y, of[k], i), 1e-5)
            << "element " << i << " of leaf " << k;
    }
  }
  double difference(Id y, Id of, size_t i) {
    constexpr double kStep = 1e-6;
    uint64_t& bits = leaves[of].bits[i];
    const uint64_t before = bits;
    const double at = std::bit_cast<double>(before);
    bits = std::bit_cast<uint64_t>(at + kStep);
    const double above = sum_of(y);
    bits = std::bit_cast<uint64_t>(at - kStep);
    const double below = sum_of(y);
    bits = before;
    return (above - below) / (2 * kStep);
  }
  Id squared(Id x) { return g.binary(Op::Mul, x, x); }
};

TEST_F(EachRow, OfElementwiseOps) {
  for (int round = 0; round < 8; ++round) {
    const Id a = leaf({3}), b = leaf({3}), c = leaf({3});
    for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::FDiv, Op::Max, Op::Mod})
      check(squared(g.binary(op, a, b)), {a, b});
    for (Op op : {Op::Neg, Op::Recip, Op::Sqrt, Op::Exp2, Op::Log2, Op::Sin, Op::Exp, Op::Log,
                  Op::Cos, Op::Contiguous})
      check(squared(g.unary(op, a)), {a});
    check(g.binary(Op::Pow, a, b), {a, b});
    check(g.unary(Op::Tan, g.binary(Op::Mul, a, number(0.25))), {a});
    check(squared(g.add(Op::Fma, DType::F64, {a, b, c})), {a, b, c});
    check(squared(g.where(g.binary(Op::CmpLt, a, b), a, c)), {a, c});
    const Id zero = number(0), inner = g.binary(Op::Sub, a, b);
    const Id cut =
        g.binary(Op::Or, g.binary(Op::CmpLt, inner, zero), g.binary(Op::CmpEq, inner, zero));
    check(squared(g.where(cut, zero, inner)), {a, b});
    check(g.binary(Op::Mul, g.unary(Op::Trunc, a), b), {b});
    check(squared(g.add(Op::Copy, DType::F64, {a}, 2)), {a});
    const ListId on_mesh = g.list({2, 0, static_cast<int64_t>(Op::Add), 1});
    check(squared(g.add(Op::Shard, DType::F64, {a}, on_mesh)), {a});
  }
  for (const char* name :
       {"d-add", "d-sub",        "d-mul",  "d-fdiv",  "d-max",  "d-neg",  "d-recip", "d-sqrt",
        "d-mod", "d-exp2",       "d-log2", "d-sin",   "d-exp",  "d-log",  "d-pow",   "d-cos",
        "d-tan", "d-contiguous", "d-fma",  "d-where", "d-relu", "d-copy", "d-shard"})
    EXPECT_TRUE(applied.contains(name)) << name;
}

TEST_F(EachRow, OfViewsAndReductions) {
  const Id a = leaf({2, 3}), column = leaf({2, 1});
  check(squared(move(Op::Reshape, a, {3, 2})), {a});
  check(squared(move(Op::Permute, a, {1, 0})), {a});
  check(squared(move(Op::Expand, column, {2, 4})), {column});
  check(squared(move(Op::Pad, a, {1, 0, 0, 2})), {a});
  check(squared(move(Op::Shrink, a, {0, 2, 1, 3})), {a});
  check(squared(move(Op::Flip, a, {0, 1})), {a});
  for (Op op : {Op::Add, Op::Max, Op::Mul}) check(squared(reduce(op, a, {1})), {a});
  for (const char* name : {"d-reshape", "d-permute", "d-expand", "d-pad", "d-shrink", "d-flip",
                           "d-reduce-add", "d-reduce-max", "d-reduce-mul"})
    EXPECT_TRUE(applied.contains(name)) << name;
}

}  // namespace
}  // namespace plugrad::autodiff
