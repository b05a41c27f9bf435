// Nodes built by hand, and sharing of equal expressions.
#include "plugrad/uop.h"

#include <gtest/gtest.h>

#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

using namespace ir;

UOp two() {
  return UOp::constant(2, DType::I32);
}

const Pattern a = Pattern::constant("a"), b = Pattern::constant("b");

UOp sum_of(const Match& m) {
  return UOp::constant(m["a"].integer() + m["b"].integer(), m.root().dtype());
}

TEST(UOpByHand, two_plus_two_folds_to_four_by_a_matcher_of_one_rule) {
  const UOp sum = two() + two();
  EXPECT_EQ(sum.op(), "add");
  const UOp four = PatternMatcher{{a + b, sum_of}}.rewrite(sum);
  EXPECT_EQ(four.op(), "const");
  EXPECT_EQ(four.integer(), 4);
  EXPECT_EQ(four.to_string(), "%0 = const i32 4\nreturn %0\n");
}

TEST(UOpByHand, two_spellings_of_a_rule_give_the_same_node) {
  const UOp sum = two() + two();
  const PatternMatcher with_operator{{a + b, sum_of}};
  const PatternMatcher by_name{{Pattern::op("add", {a, b}, "sum"), [](const Match& m) {
                                  const auto s = m["sum"].sources();
                                  return UOp::constant(s[0].integer() + s[1].integer(),
                                                       m["sum"].dtype());
                                }}};
  const PatternMatcher as_pattern{{a + b, b + a}};
  EXPECT_EQ(with_operator.rewrite(sum), by_name.rewrite(sum));
  EXPECT_EQ(with_operator.rewrite(sum), as_pattern.rewrite(sum));
  EXPECT_EQ(with_operator.rewrite(sum), sum.simplify());
  EXPECT_EQ(with_operator.rewrite(sum), UOp::constant(4, DType::I32));
}

TEST(UOpByHand, a_constant_built_twice_is_one_node) {
  EXPECT_EQ(two(), two());
  EXPECT_FALSE(two() == UOp::constant(2, DType::I64));
  EXPECT_EQ(Tensor(2).uop(), UOp::constant(2));
  EXPECT_FALSE(UOp::constant(0.0) == UOp::constant(-0.0));
}

TEST(UOpByHand, an_expression_built_twice_is_one_node_and_is_computed_once) {
  const Tensor t = Tensor::from({1, 2, 3}).realize();
  const Tensor first = t * 4, second = t * 4;
  EXPECT_EQ(first.uop(), second.uop());
  EXPECT_EQ(first.uop(), t.uop() * 4);
  EXPECT_FALSE(second.is_realized());
  first.realize();
  EXPECT_TRUE(second.is_realized());
  EXPECT_TRUE((t * 4).is_realized());
  EXPECT_EQ(second.schedule().size(), 0u);
  EXPECT_EQ(second.to_vector<int>(), (std::vector<int>{4, 8, 12}));
}

}  // namespace
}  // namespace plugrad
