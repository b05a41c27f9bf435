#include <gmock/gmock.h>

#include <numbers>

#include "autodiff/rules.h"
#include "base/settings.h"
#include "graph_fixture.h"
#include "plugrad/error.h"
#include "rewrite/disabled.h"

namespace plugrad::autodiff {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Gradient = GraphFixture;

TEST_F(Gradient, OfArithmetic) {
  const Id a = buffer({2}, {3, -4}), b = buffer({2}, {2, 8});
  EXPECT_THAT(values(derivative(g.binary(Op::Mul, a, b), a)), ElementsAre(2, 8));
  EXPECT_THAT(values(derivative(g.binary(Op::Sub, a, b), b)), ElementsAre(-1, -1));
  EXPECT_THAT(values(derivative(g.binary(Op::FDiv, a, b), b)), ElementsAre(-0.75, 0.0625));
  EXPECT_THAT(values(derivative(g.binary(Op::Add, a, a), a)), ElementsAre(2, 2));
  EXPECT_THAT(values(derivative(g.binary(Op::Mul, a, a), a)), ElementsAre(6, -8));
  EXPECT_THAT(values(derivative(g.unary(Op::Recip, b), b)), ElementsAre(-0.25, -0.015625));
  EXPECT_THAT(values(derivative(g.unary(Op::Neg, b), b)), ElementsAre(-1, -1));
  EXPECT_THAT(values(derivative(g.unary(Op::Trunc, b), b)), ElementsAre(0, 0));
  EXPECT_THAT(values(derivative(g.add(Op::Fma, DType::F64, {a, b, a}), b)), ElementsAre(3, -4));
}

TEST_F(Gradient, OfReluReadsItsValueOnly) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Id a = buffer({5}, {-2, 0, 3, -0.0, nan}), zero = number(0);
  const Id inner = g.binary(Op::Mul, a, number(2));
  const Id cut =
      g.binary(Op::Or, g.binary(Op::CmpLt, inner, zero), g.binary(Op::CmpEq, inner, zero));
  const Id y = g.where(cut, zero, inner);
  const Id dy = derivative(y, inner);
  EXPECT_THAT(values(dy), ElementsAre(0, 0, 1, 0, 1));
  Reachable reachable;
  for (Id id : reachable.from(g, std::vector{dy}, [&](Id id) { return id == y; }))
    EXPECT_NE(id, cut);
}

SettingScope without(const char* names) {
  return SettingScope{[names](Settings& s) { s.disable = names; }};
}

TEST_F(Gradient, ADerivativeThatIsSwitchedOffIsAnErrorThatNamesTheOp) {
  const Id a = buffer({2}, {3, -4});
  const auto scope = without("d-mul, d-sin");
  EXPECT_THAT(values(derivative(g.binary(Op::Add, a, a), a)), ElementsAre(2, 2));
  try {
    derivative(g.binary(Op::Mul, a, a), a);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("leaves out d-mul, without which mul of shape (2)"));
  }
}

TEST_F(Gradient, WithoutARowForSeveralNodesTheirOwnRowsGiveTheSame) {
  const Id a = buffer({3}, {-2, 0, 3}), zero = number(0);
  const Id cut = g.binary(Op::Or, g.binary(Op::CmpLt, a, zero), g.binary(Op::CmpEq, a, zero));
  const Id relu = g.where(cut, zero, a);
  const Id by_relu = derivative(relu, a);
  const auto scope = without("d-relu");
  const Id by_where = derivative(relu, a);
  EXPECT_NE(by_where, by_relu);
  EXPECT_THAT(values(by_where), ElementsAre(0, 0, 1));
}

TEST_F(Gradient, AnUnknownDerivativeThatIsSwitchedOffIsAnErrorWithTheNearest) {
  const Id a = buffer({2}, {3, -4});
  const auto scope = without("add-zero,d-mull");
  try {
    derivative(a, a);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean d-mul?"));
  }
}

TEST_F(Gradient, NamesOfDerivativesBeginAlike) {
  for (const std::string& name : derivative_names())
    EXPECT_TRUE(name.starts_with(kDerivativePrefix)) << name;
}

TEST_F(Gradient, WithoutDependenceThereIsNone) {
  const Id a = buffer({2}, {3, -4}), b = buffer({2}, {2, 8});
  EXPECT_EQ(derivative(g.unary(Op::Neg, a), b), kNoId);
  EXPECT_EQ(derivative(g.unary(Op::Detach, a), a), kNoId);
  EXPECT_EQ(derivative(g.cast(g.cast(a, DType::I32), DType::F64), a), kNoId);
}

TEST_F(Gradient, ATargetBelowAnotherGetsTheWholeOfIt) {
  const Id a = buffer({1}, {3}), square = g.binary(Op::Mul, a, a), y = g.binary(Op::Mul, square, a);
  const Id targets[] = {a, square, y};
  const std::vector<Id> found = gradient(context, y, number(1), targets);
  EXPECT_THAT(values(found[0]), ElementsAre(27));
  EXPECT_THAT(values(found[1]), ElementsAre(3));
  EXPECT_THAT(values(found[2]), ElementsAre(1));
}

TEST_F(Gradient, EqualElementsShareAMaximum) {
  const Id a = buffer({3}, {1, 5, 2}), b = buffer({3}, {1, 4, 3});
  EXPECT_THAT(values(derivative(g.binary(Op::Max, a, b), a)), ElementsAre(0.5, 1, 0));
  EXPECT_THAT(values(derivative(g.binary(Op::Max, a, b), b)), ElementsAre(0.5, 0, 1));
  const Id c = buffer({2, 3}, {7, 7, 1, 2, 3, 0});
  EXPECT_THAT(values(derivative(reduce(Op::Max, c, {1}), c)), ElementsAre(0.5, 0.5, 0, 0, 1, 0));
}

TEST_F(Gradient, OfAMaximumThatIsNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Id rows = buffer({3, 2}, {nan, 1, nan, nan, 2, 3});
  const std::vector<double> d = values(derivative(reduce(Op::Max, rows, {1}), rows));
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(d[i])) << i;
  EXPECT_EQ(d[4], 0);
  EXPECT_EQ(d[5], 1);
  const Id a = buffer({3}, {nan, 1, nan}), b = buffer({3}, {1, nan, nan});
  EXPECT_THAT(values(derivative(g.binary(Op::Max, a, b), a)), ElementsAre(1, 1, 1));
  EXPECT_THAT(values(derivative(g.binary(Op::Max, a, b), b)), ElementsAre(1, 1, 1));
}

TEST_F(Gradient, OfAProductThatHasZeros) {
  const Id a = buffer({4, 3}, {2, 3, 4, 0, 3, 4, 0, 5, 0, -1, 1, 2});
  EXPECT_THAT(values(derivative(reduce(Op::Mul, a, {1}), a)),
              ElementsAre(12, 8, 6, 12, 0, 0, 0, 0, 0, 2, -2, -1));
}

TEST_F(Gradient, OfChoicesIsMasked) {
  const Id a = buffer({3}, {1, -5, 2}), positive = g.binary(Op::CmpLt, number(0), a);
  const Id root = g.where(positive, g.unary(Op::Sqrt, a), number(0));
  const std::vector<double> d = values(derivative(root, a));
  EXPECT_DOUBLE_EQ(d[0], 0.5);
  EXPECT_TRUE(std::isnan(d[1]) || d[1] == 0);  // 0 / sqrt(-5)
  EXPECT_DOUBLE_EQ(d[2], 0.5 / std::numbers::sqrt2);
}

TEST_F(Gradient, OfMovementIsTheMovementTransposed) {
  const Id a = buffer({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto flow = [&](Id y, std::vector<double> weights) {
    const auto sizes = shapes[y];
    const Id w = buffer({sizes.begin(), sizes.end()}, weights);
    return values(derivative(g.binary(Op::Mul, y, w), a));
  };
  EXPECT_THAT(flow(move(Op::Permute, a, {1, 0}), {1, 2, 3, 4, 5, 6}),
              ElementsAre(1, 3, 5, 2, 4, 6));
  EXPECT_THAT(flow(move(Op::Reshape, a, {6}), {1, 2, 3, 4, 5, 6}), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(flow(move(Op::Flip, a, {0, 1}), {1, 2, 3, 4, 5, 6}), ElementsAre(3, 2, 1, 6, 5, 4));
  EXPECT_THAT(flow(move(Op::Shrink, a, {1, 2, 0, 2}), {7, 8}), ElementsAre(0, 0, 0, 7, 8, 0));
  EXPECT_THAT(flow(move(Op::Pad, a, {1, 0, 0, 1}), {9, 9, 9, 9, 1, 2, 3, 9, 4, 5, 6, 9}),
              ElementsAre(1, 2, 3, 4, 5, 6));
  const Id row = move(Op::Shrink, a, {0, 1, 0, 3});
  EXPECT_THAT(flow(move(Op::Expand, row, {2, 3}), {1, 2, 3, 4, 5, 6}),
              ElementsAre(5, 7, 9, 0, 0, 0));
}

TEST_F(Gradient, ANumberUsedForEveryElementCollectsFromAll) {
  const Id a = buffer({2, 3}, {1, 2, 3, 4, 5, 6}), s = buffer({}, {10});
  EXPECT_THAT(values(derivative(g.binary(Op::Mul, a, s), s)), ElementsAre(21));
  EXPECT_THAT(values(derivative(g.binary(Op::Add, a, s), s)), ElementsAre(6));
  const Id total = move(Op::Reshape, reduce(Op::Add, a, {0, 1}), {});  // 21, of shape ()
  EXPECT_THAT(values(derivative(g.binary(Op::Mul, a, total), a)),
              ElementsAre(42, 42, 42, 42, 42, 42));
}

TEST_F(Gradient, IsInTheDtypeOfItsTarget) {
  const Id a = buffer({2}, {3, -4}, DType::F16);
  const Id d = derivative(g.binary(Op::Mul, g.cast(a, DType::F64), number(0.5)), a);
  EXPECT_EQ(g[d].dtype, DType::F16);
  EXPECT_THAT(values(d), ElementsAre(0.5, 0.5));
}

TEST_F(Gradient, GoesBackToTheDeviceItCameFrom) {
  const Id a = buffer({2}, {3, -4}, DType::F64, 2);
  const Id there = g.add(Op::Copy, DType::F64, {a}, 1);
  const Id d = derivative(g.binary(Op::Mul, there, there), a);
  EXPECT_EQ(devices[d], 2u);
  EXPECT_THAT(values(d), ElementsAre(6, -8));
}

TEST_F(Gradient, OfAGradient) {
  const Id a = buffer({2}, {3, -4});
  const Id cube = g.binary(Op::Mul, g.binary(Op::Mul, a, a), a);
  const Id first = derivative(cube, a), second = derivative(first, a),
           third = derivative(second, a);
  EXPECT_THAT(values(first), ElementsAre(27, 48));
  EXPECT_THAT(values(second), ElementsAre(18, -24));
  EXPECT_THAT(values(third), ElementsAre(6, 6));
}

// Quadratic time would exceed the test's time limit.
TEST_F(Gradient, OfAChainOf100000Ops) {
  const Id a = buffer({1}, {1});
  Id y = a;
  for (int i = 0; i < 50000; ++i) {
    y = g.binary(Op::Mul, y, number(1.0 + 1e-9 * (i + 1)));
    y = g.binary(Op::Add, y, number(1e-9 * (i + 1)));
  }
  const Id d = derivative(y, a);
  EXPECT_NEAR(values(d)[0], std::exp(1e-9 * 50000.0 * 50001.0 / 2), 1e-3);
}

}  // namespace
}  // namespace plugrad::autodiff
