// The pipeline runner: order, recording, verification and printing.
#include "rewrite/stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "base/settings.h"
#include "ir/uop.h"
#include "rewrite/rewrite.h"
#include "rewrite/stage_record.h"

namespace plugrad {
namespace {
using namespace rules;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct State {
  Graph g;
  Id root = kNoId;
  std::vector<std::string> seen;
};

void simplify(State& state) {
  static constexpr Rule kRules[] = {rule("one", x * 1, x), rule("zero", x + 0, x)};
  state.root = rewrite(state.g, state.root, kRules, {.fixpoint = true});
  state.seen.emplace_back("simplify");
}
void finish(State& state) {
  state.seen.emplace_back("finish");
}
void check(State& state, const Stage<State>& stage) {
  state.seen.push_back(std::string("check ") + stage.name);
}
std::string text(State& state, const Stage<State>& stage) {
  return std::string(stage.name) + " %" + std::to_string(state.root);
}

constexpr Stage<State> kStages[] = {
    {"simplify", simplify, Form::TensorGraph, "nothing is added"},
    {"finish", finish, Form::Plan, "all is done"},
};
GraphView graph_of(const State& state) {
  return {&state.g, {state.root}};
}
constexpr Pipeline<State> kPipeline = {"test", kStages, check, text, graph_of};

struct StageTest : ::testing::Test {
  State state;
  std::string log;

  StageTest() {
    UOp a{&state.g, state.g.add(Op::Param, DType::I32, {}, state.g.list({0, 0, 1, 1}))};
    state.root = (a * 1) * 1 + 0;
    set_log_sink([](std::string_view line, void* to) { *static_cast<std::string*>(to) += line; },
                 &log);
  }
  ~StageTest() override { set_log_sink(nullptr, nullptr); }
};

TEST_F(StageTest, RunInTheOrderOfTheTable) {
  kPipeline.run(state);
  EXPECT_THAT(state.seen, ElementsAre("simplify", "finish"));
  EXPECT_EQ(log, "");
}

TEST_F(StageTest, AreVerifiedWhenAsked) {
  SettingScope scope([](Settings& s) { s.verify = true; });
  kPipeline.run(state);
  EXPECT_THAT(state.seen, ElementsAre("simplify", "check simplify", "finish", "check finish"));
}

TEST_F(StageTest, PrintTheGraphAndTheRulesThatApplied) {
  SettingScope scope([](Settings& s) { s.debug = 4; });
  kPipeline.run(state);
  EXPECT_THAT(log, HasSubstr("--- test: simplify (nothing is added)\nsimplify %0\n"));
  EXPECT_THAT(log, HasSubstr("rules: one 1, zero 1\n"));
  EXPECT_THAT(log, HasSubstr("--- test: finish (all is done)\n"));
}

TEST_F(StageTest, PrintOneStageByName) {
  SettingScope scope([](Settings& s) { s.dump = "finish"; });
  kPipeline.run(state);
  EXPECT_THAT(log, HasSubstr("finish %0"));
  EXPECT_THAT(log, Not(HasSubstr("simplify")));
}

TEST_F(StageTest, AreListedFromTheTable) {
  const std::vector<StageInfo> rows = kPipeline.rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_STREQ(rows[1].name, "finish");
  EXPECT_STREQ(name_of(rows[1].form), "plan");
  EXPECT_STREQ(rows[0].meaning, "nothing is added");
}

}  // namespace
// The nodes of a trace's stage, whose graph may be replaced by another in which ids mean other
// nodes.
TEST(NodeRecord, NodesOfAReplacedGraphGetNewNumbers) {
  Graph first, second;
  const Id a = first.add(Op::Param, DType::I32, {}, first.list({0, 0, 1, 1}));
  const Id sum = first.binary(Op::Add, a, a);
  const Id b = second.add(Op::Param, DType::F32, {}, second.list({0, 0, 1, 1}));
  const Id product = second.binary(Op::Mul, b, b);
  ASSERT_EQ(sum, product);
  NodeRecord record;
  const uint32_t first_sum = record.add(first, sum);
  EXPECT_EQ(record.add(first, sum), first_sum);
  const uint32_t second_product = record.add(second, product);
  EXPECT_NE(second_product, first_sum);
  EXPECT_EQ(record.lines(),
            "[0,\"param\",\"i32\",\"[0, 0, 1, 1]\",[]],[1,\"add\",\"i32\",\"\",[0,0]],"
            "[2,\"param\",\"f32\",\"[0, 0, 1, 1]\",[]],[3,\"mul\",\"f32\",\"\",[2,2]]");
}

TEST(NodeRecord, ACopyOfAGraphKeepsNumbersOnlyIfAllOfItIsTheSame) {
  Graph first, same, other;
  const auto build = [](Graph& g, int64_t size) {
    const Id a = g.add(Op::Param, DType::I32, {}, g.list({0, 0, size, 1}));
    return g.binary(Op::Add, a, a);
  };
  const Id sum = build(first, 4);
  ASSERT_EQ(build(same, 4), sum);
  ASSERT_EQ(build(other, 8), sum);
  NodeRecord record;
  const uint32_t number = record.add(first, sum);
  record.replaced_graph();
  EXPECT_EQ(record.add(same, sum), number);
  record.replaced_graph();
  EXPECT_NE(record.add(other, sum), number) << "the size below it is another one";
}

}  // namespace plugrad
