// Nodes built by hand: building, matching and refusals.
#include "plugrad/uop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <thread>

#include "engine/session.h"
#include "unit/custom/message.h"

namespace plugrad::ir {
namespace {

using test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;

const Pattern x = Pattern::any("x"), y = Pattern::any("y"), c = Pattern::constant("c");

UOp variable(uint32_t axis, int64_t size = 8) {
  return UOp::range(size, axis);
}

TEST(UOp, numbers_take_the_dtype_of_what_they_meet) {
  const UOp i = variable(0);
  EXPECT_EQ((i * 4 + 1).dtype(), DType::Index);
  EXPECT_EQ((UOp::constant(1.5, DType::F16) + 2).dtype(), DType::F16);
  EXPECT_EQ((2 - UOp::constant(1, DType::U8)).dtype(), DType::U8);
  EXPECT_EQ((i < 3).dtype(), DType::Bool);
  EXPECT_EQ((i < 3).where(i, 0).dtype(), DType::Index);
  EXPECT_EQ(UOp::constant(true).dtype(), DType::Bool);
  EXPECT_EQ(UOp::constant(300, DType::U8).integer(), 44);  // integers wrap
  EXPECT_EQ((UOp::constant(1.0, DType::F32) / 2).op(), "fdiv");
  EXPECT_EQ((i / 2).op(), "floordiv");
}

TEST(UOp, shows_its_parts_and_reads_what_it_prints) {
  const UOp i = variable(3), e = i * 4 + 2;
  EXPECT_EQ(e.op(), "add");
  EXPECT_EQ(e.size(), 6u);
  ASSERT_EQ(e.sources().size(), 2u);
  EXPECT_EQ(e.sources()[0], i * 4);
  EXPECT_EQ(e.sources()[1].number(), 2.0);
  EXPECT_EQ(UOp::parse(e.to_string())[0], e);
  std::ostringstream out;
  out << e;
  EXPECT_EQ(out.str(), e.to_string());
  const Tensor t = Tensor::from({1, 2, 3, 4});
  const UOp view = t.reshape({2, 2}).uop();
  EXPECT_EQ(view.op(), "reshape");
  EXPECT_THAT(view.arg(), ElementsAre(2, 2));
  EXPECT_EQ(view.shape(), (Shape{2, 2}));
}

TEST(UOp, of_tensors_are_tensors_again) {
  const Tensor t = Tensor::from({1.f, 2.f, 3.f});
  const UOp doubled = PatternMatcher{{x * c, x + x}}.rewrite((t * 2 + 1).uop());
  EXPECT_EQ(doubled, (t + t + 1).uop());
  EXPECT_THAT(doubled.tensor().to_vector<float>(), ElementsAre(3, 5, 7));
  // A rule that makes a number of a tensor makes a tensor of it.
  const UOp zero =
      PatternMatcher{{x - x, UOp::constant(0).integer()}}.rewrite((t - t).reshape({3, 1}).uop());
  EXPECT_EQ(zero.shape(), (Shape{3, 1}));
  EXPECT_THAT(zero.tensor().to_vector<float>(), ElementsAre(0, 0, 0));
}

TEST(UOp, evaluates_constants_and_keeps_IEEE) {
  EXPECT_EQ((UOp::constant(7, DType::I32) / -2).simplify().integer(), -4);
  const UOp f = UOp::make("cast", {variable(0)}, DType::F32);
  EXPECT_EQ((f * 1.0).simplify(), f);
  EXPECT_EQ((f + 0.0).simplify().op(), "add");
  EXPECT_EQ((f + 0.0).simplify(true), f);
  const UOp i = variable(0);
  EXPECT_EQ(((i * 8 + 3) / 8).simplify(), i);
  const Tensor t = Tensor::from({1, 2});
  EXPECT_EQ((t * 0).uop().simplify().shape(), (Shape{2}));
  EXPECT_THAT(message_of([&] { t.reshape({2, 1}).uop().simplify(); }), HasSubstr("[simplify] "));
}

TEST(PatternMatcher, binds_names_and_matches_either_order) {
  const UOp i = variable(0), j = variable(1);
  const PatternMatcher distribute{
      {x * (y + c), [](const Match& m) { return m["x"] * m["y"] + m["x"] * m["c"]; }}};
  EXPECT_EQ(distribute.rewrite((i + 5) * j), j * i + j * 5);
  EXPECT_FALSE(distribute.apply(i + j).defined());
  const PatternMatcher same{{x + x, [](const Match& m) { return m["x"] * 2; }}};
  EXPECT_EQ(same.apply(i + i), i * 2);
  EXPECT_FALSE(same.apply(i + j).defined());
}

TEST(PatternMatcher, tries_rules_in_order_until_none_applies) {
  const UOp i = variable(0);
  const PatternMatcher rules{{x * 1, x, "one"}, {x + 0, x, "nothing"}, {x * 0, 0, "none"}};
  EXPECT_EQ(rules.rewrite(((i * 1 + 0) * 1 + 0) * 1), i);
  EXPECT_EQ(rules.rewrite((i + 3) * 0), UOp::constant(0));
  const PatternMatcher declines{{x + y, [](const Match&) { return UOp(); }},
                                {x + c, [](const Match& m) { return m["c"] * m["x"]; }}};
  EXPECT_EQ(declines.rewrite(i + 3), i * 3);
}

TEST(PatternMatcher, what_is_wrong_with_rules_is_said) {
  const UOp i = variable(0);
  EXPECT_THAT(message_of([] { PatternMatcher{{x, x}}; }), HasSubstr("begin with one"));
  EXPECT_THAT(message_of([] { PatternMatcher{{x + 1, y, "lost"}}; }),
              HasSubstr("[rule lost] its right side uses \"y\""));
  EXPECT_THAT(message_of([&] {
                PatternMatcher{{x * c, [](const Match& m) { return m["y"]; }}}.rewrite(i * 2);
              }),
              HasSubstr("no name \"y\""));
  EXPECT_THAT(
      message_of([&] {
        PatternMatcher{{x * c, [](const Match&) { return UOp(1.5); }, "half"}}.rewrite(i * 2);
      }),
      HasSubstr("[rule half] made"));
  EXPECT_THAT(message_of([&] {
                PatternMatcher{{x + y, [](const Match& m) { return m["y"] - (0 - m["x"]); }, "to"},
                               {x - (0 - y), x + y, "fro"}}
                    .rewrite(i + variable(1));
              }),
              HasSubstr("undo each other"));
  EXPECT_THAT(message_of([] { Pattern::op("plus", {x, y}); }), HasSubstr("no op \"plus\""));
  EXPECT_THAT(message_of([] { PatternMatcher{{x + y, Pattern::op("reshape", {x})}}; }),
              HasSubstr("a pattern builds arithmetic"));
  Pattern deep = x;
  for (int k = 0; k < 10; ++k) deep = deep + k;
  EXPECT_THAT(message_of([&] { PatternMatcher{{deep, x}}; }), HasSubstr("more than 20 nodes"));
}

TEST(PatternMatcher, exceptions_of_right_sides_pass_through) {
  const PatternMatcher rules{{x + y, [](const Match&) -> UOp { throw std::logic_error("mine"); }}};
  EXPECT_THROW(rules.rewrite(variable(0) + 1), std::logic_error);
  EXPECT_EQ((variable(0) + 1).op(), "add");
}

TEST(UOpErrors, say_what_a_node_needs) {
  const UOp i = variable(0);
  const Tensor t = Tensor::from({1.f, 2.f, 3.f});
  EXPECT_THAT(message_of([] { UOp().op(); }), HasSubstr("[op] a UOp is undefined"));
  EXPECT_THAT(message_of([] { UOp::make("plus", {}); }), HasSubstr("no op \"plus\""));
  const DType mistyped = dtype_from_name("flaot");
  EXPECT_THAT(message_of([&] { UOp::make("add", {i, i}, mistyped); }), HasSubstr("void is no"));
  EXPECT_THAT(message_of([&] { UOp::make("cast", {i}, mistyped); }), HasSubstr("void is no"));
  EXPECT_THAT(message_of([&] { UOp::constant(1, mistyped); }), HasSubstr("void is no dtype"));
  EXPECT_THAT(message_of([&] { UOp::constant(true, mistyped); }), HasSubstr("void is no dtype"));
  EXPECT_THAT(message_of([&] { UOp::make("add", {i}); }), HasSubstr("number of sources"));
  EXPECT_THAT(message_of([&] { i + UOp::constant(1.5); }), HasSubstr("one dtype"));
  EXPECT_THAT(message_of([&] { UOp::make("sqrt", {i}); }), HasSubstr("floats only"));
  EXPECT_THAT(message_of([&] { UOp::make("permute", {t.uop()}, {}, {1}); }),
              HasSubstr("no permutation"));
  EXPECT_THAT(message_of([&] { UOp::make("reshape", {t.uop()}, {}, {2, 2}); }),
              HasSubstr("number of elements"));
  EXPECT_THAT(message_of([&] { UOp::make("reshape", {t.uop()}, {}, {-1, -3}); }),
              HasSubstr("negative"));
  EXPECT_THAT(message_of([&] { UOp::make("pad", {t.uop()}, {}, {int64_t{1} << 62, 1}); }),
              HasSubstr("2^60"));
  const UOp one = t.reshape({3, 1, 1, 1}).uop();
  EXPECT_THAT(message_of([&] { UOp::make("expand", {one}, {}, {3, 1 << 30, 1 << 30, 1 << 30}); }),
              HasSubstr("2^60"));
  EXPECT_THAT(message_of([&] { t.uop() + Tensor::from({1.f, 2.f}).uop(); }),
              HasSubstr("one shape"));
  EXPECT_THAT(message_of([&] { UOp::make("buffer", {}, DType::F32, {1, 1, 4}); }),
              HasSubstr("Tensor::uop()"));
  EXPECT_THAT(message_of([] { UOp::make("iota", {}, DType::I32, {-1}); }), HasSubstr("negative"));
  EXPECT_THAT(message_of([] { UOp::parse("%0 = buffer f32 [1, 1, 4]"); }), HasSubstr("buffer"));
  EXPECT_THAT(message_of([] { UOp::parse("%0 = const i32 1\n%1 = exp2 i32 %0"); }),
              HasSubstr("floats only"));
  EXPECT_THAT(message_of([] { UOp::parse("nonsense"); }), HasSubstr("line 1, column 1"));
  EXPECT_THAT(message_of([&] { i.integer(); }), HasSubstr("no integer constant"));
  EXPECT_THAT(message_of([&] { i.tensor(); }), HasSubstr("range"));
}

// Text with parts changed, moved or cut is read or refused.
TEST(UOpErrors, damaged_text_is_refused_or_read) {
  const std::string text = (Tensor::arange(12).reshape({3, 4}).permute({1, 0}) * 2)
                               .pad({{1, 1}, {0, 2}})
                               .sum(0)
                               .uop()
                               .to_string();
  uint32_t seed = 1;
  const auto next = [&](size_t below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
  };
  size_t read = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string damaged = text;
    for (size_t k = 0; k <= next(3); ++k) {
      const size_t at = next(damaged.size()), other = next(damaged.size());
      switch (next(3)) {
        case 0:
          damaged[at] = static_cast<char>('0' + next(10));
          break;
        case 1:
          std::swap(damaged[at], damaged[other]);
          break;
        default:
          damaged.erase(at, next(4));
      }
    }
    try {
      for (const UOp& node : UOp::parse(damaged)) read += node.size() != 0;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::User) << error.what() << damaged;
    }
  }
  EXPECT_GT(read, 0u);
}

TEST(UOpLives, handles_keep_nodes_through_collections) {
  auto& session = engine::Session::current();
  const UOp i = variable(7, 9), e = i * 3 + 1;
  const std::string text = e.to_string();
  for (int k = 0; k < 1000; ++k) (void)(i * k);
  session.collect();
  EXPECT_EQ(e.to_string(), text);
  EXPECT_EQ(e, i * 3 + 1);
  EXPECT_EQ(e.sources()[0].sources()[0], i);
}

TEST(UOpLives, chains_of_a_hundred_thousand_need_no_stack) {
  UOp e = variable(0);
  const UOp step = variable(1);
  for (int k = 0; k < 100'000; ++k) e = (k % 2 == 0) ? e + step : e * step;
  EXPECT_GT(e.to_string().size(), 1'000'000u);
  const UOp other =
      PatternMatcher{{x * y, [](const Match& m) { return m["x"] - m["y"]; }}}.rewrite(e);
  EXPECT_EQ(other.size(), e.size());
  EXPECT_EQ(other.op(), "sub");
  EXPECT_THAT((std::vector{other.sources()[0].op(), other.sources()[1].op()}),
              testing::UnorderedElementsAre("add", "range"));
  EXPECT_EQ(UOp::parse(e.to_string())[0], e);
}

TEST(UOpLives, threads_build_and_rewrite_at_once) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      const PatternMatcher rules{{x * 1, x}, {x + 0, x}};
      for (int k = 0; k < 300; ++k) {
        const UOp i = variable(static_cast<uint32_t>(k), 5 + t);
        EXPECT_EQ(rules.rewrite((i * 1 + 0) * 1), i);
      }
    });
  for (int k = 0; k < 20; ++k) engine::Session::current().collect();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace plugrad::ir
