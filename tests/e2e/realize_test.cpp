// Cost and effects of realising: kernels launched, plans reused, values shared, history dropped.
#include <gmock/gmock.h>

#include "base/settings.h"
#include "e2e/fixture.h"
#include "plugrad/error.h"

using namespace plugrad;
using testing::ElementsAre;

namespace {

class Realize : public e2e::SessionTest {};

TEST_F(Realize, ASumOfTwoIsOneKernel) {
  const State a = host({4}, {1, 2, 3, 4}), b = host({4}, {10, 20, 30, 40});
  const State c = add(a, b);
  EXPECT_FALSE(session.is_realized(*c));
  EXPECT_EQ(kernels([&] { session.realize(*c); }), 1u);
  EXPECT_TRUE(session.is_realized(*c));
  EXPECT_THAT(values(c), ElementsAre(11, 22, 33, 44));
}

TEST_F(Realize, NothingRunsTwice) {
  const State t = host({3}, {1, 2, 3}), four = constant(4);
  const State first = mul(t, four);
  session.realize(*first);
  EXPECT_EQ(kernels([&] { session.realize(*first); }), 0u);
  const State second = mul(t, four);
  EXPECT_EQ(kernels([&] { EXPECT_THAT(values(second), ElementsAre(4, 8, 12)); }), 0u);
}

TEST_F(Realize, MovementsOfValuesAndConstantsCostNothing) {
  const State x = host({2, 3}, {0, 1, 2, 3, 4, 5});
  for (const State& view :
       {with_list(Op::Permute, x, {1, 0}), with_list(Op::Reshape, x, {6}),
        with_list(Op::Flip, x, {1, 0}), with_list(Op::Shrink, x, {0, 1, 0, 3}), constant(7)})
    EXPECT_EQ(kernels([&] { session.realize(*view); }), 0u);
  EXPECT_EQ(kernels([&] { EXPECT_EQ(values(constant(7))[0], 7); }), 0u);
  EXPECT_THAT(values(with_list(Op::Permute, x, {1, 0})), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(values(with_list(Op::Pad, x, {0, 0, 1, 0})), ElementsAre(0, 0, 1, 2, 0, 3, 4, 5));
}

TEST_F(Realize, AnExpandedSumStoresTheSum) {
  const State x = host({1, 2}, {1, 2});
  const State wide = with_list(Op::Expand, add(x, x), {3, 2});
  session.realize(*wide);
  EXPECT_EQ(kernels([&] { session.realize(*wide); }), 0u);
  EXPECT_THAT(values(wide), ElementsAre(2, 4, 2, 4, 2, 4));
}

TEST_F(Realize, TheSameGraphOnOtherBuffersReusesThePlan) {
  const auto step = [&](float start) {
    const State a = host({5}, {start, 1, 2, 3, 4}), b = host({5}, {1, 1, 1, 1, 1});
    return values(sum(mul(add(a, b), b), {0}))[0];
  };
  step(0);
  const auto before = session.statistics();
  EXPECT_EQ(step(10), 25);
  const auto after = session.statistics();
  EXPECT_EQ(after.plans_made, before.plans_made);
  EXPECT_GT(after.plan_cache_hits, before.plan_cache_hits);
  EXPECT_EQ(after.kernels_compiled, before.kernels_compiled);
}

TEST_F(Realize, SettingsThatChangeKernelsAreAPartOfTheKey) {
  const State a = host({5}, {0, 1, 2, 3, 4});
  session.realize(*add(a, a));
  const auto before = session.statistics();
  const SettingScope plain([](Settings& s) { s.noopt = true; });
  session.realize(*add(host({5}, {0, 1, 2, 3, 4}), a));
  session.realize(*mul(a, a));
  EXPECT_EQ(session.statistics().plans_made, before.plans_made + 2);
}

TEST_F(Realize, ALongChainIsPlannedWithoutRecursion) {
  State x = host({2}, {0, 1});
  const State one = constant(1);
  {
    const engine::Session::Lock lock(session);
    Id node = x->node;
    for (int i = 0; i < 300; ++i)
      node = session.graph().binary(
          Op::Add, node, session.graph().constant(DType::F32, static_cast<double>(i % 3)));
    x = session.make(node);
  }
  EXPECT_THAT(values(x), ElementsAre(300, 301));
}

TEST_F(Realize, AnAssignmentIsSeenByTheStateAndNotByEarlierReads) {
  const State t = host({2}, {1, 2}), two = constant(2);
  const State before = mul(t, two);
  {
    const engine::Session::Lock lock(session);
    session.assign(*t, session.graph().binary(Op::Add, t->node, two->node));
  }
  EXPECT_TRUE(t->pending);
  const State after = mul(t, two);
  session.realize_with_pending({});
  EXPECT_FALSE(t->pending);
  EXPECT_TRUE(session.is_realized(*t));
  EXPECT_THAT(values(before), ElementsAre(2, 4));
  EXPECT_THAT(values(after), ElementsAre(6, 8));
  EXPECT_THAT(values(t), ElementsAre(3, 4));
}

TEST_F(Realize, AValueWithoutATapeIsCutFromItsInputs) {
  const State a = host({2}, {1, 2});
  const State cut = add(a, a);
  session.realize(*cut);
  EXPECT_EQ(session.graph()[cut->node].op, Op::Buffer);

  const State weight = host({2}, {3, 4});
  session.set_requires_grad(*weight, true);
  const State kept = mul(a, weight);
  session.realize(*kept);
  EXPECT_EQ(session.graph()[kept->node].op, Op::Mul);
  session.cut_tape(*kept);
  EXPECT_EQ(session.graph()[kept->node].op, Op::Buffer);
  EXPECT_THAT(values(kept), ElementsAre(3, 8));
}

TEST_F(Realize, AnAssignedLeafIsALeafAgain) {
  const State weight = host({2}, {3, 4});
  session.set_requires_grad(*weight, true);
  {
    const engine::Session::Lock lock(session);
    session.assign(*weight, session.graph().binary(Op::Add, weight->node, weight->node));
  }
  session.step_realize();
  EXPECT_EQ(session.graph()[weight->node].op, Op::Buffer);
  EXPECT_TRUE(session.is_tracked(weight->node));
  EXPECT_THAT(values(weight), ElementsAre(6, 8));
}

TEST_F(Realize, AStepComputesLossesAndAssignmentsInOnePlan) {
  const State x = host({4}, {1, 2, 3, 4}), weight = host({4}, {1, 1, 1, 1});
  const State loss = sum(mul(x, weight), {0});
  session.note_loss(loss);
  {
    const engine::Session::Lock lock(session);
    session.assign(*weight, session.graph().binary(Op::Sub, weight->node, x->node));
  }
  const uint64_t plans = session.statistics().plans_run;
  session.step_realize();
  EXPECT_EQ(session.statistics().plans_run, plans + 1);
  EXPECT_EQ(kernels([&] { EXPECT_EQ(session.item(*loss), 10); }), 0u);
  EXPECT_THAT(values(weight), ElementsAre(0, -1, -2, -3));
}

TEST_F(Realize, SizesZeroAndOne) {
  const State none = host({0, 3}, {});
  EXPECT_THAT(values(add(none, none)), ElementsAre());
  EXPECT_THAT(values(sum(none, {0})), ElementsAre(0, 0, 0));
  EXPECT_THAT(values(sum(host({1, 1}, {5}), {0, 1})), ElementsAre(5));
}

TEST_F(Realize, ValuesMoveBetweenDevices) {
  const State a = host({2}, {1, 2}, "CPU");
  State there;
  {
    const engine::Session::Lock lock(session);
    const uint32_t reference = session.device_number("REFERENCE");
    const Id sum = session.graph().binary(Op::Add, a->node, a->node);
    there = session.make(session.graph().add(Op::Copy, DType::F32, {sum}, reference));
    EXPECT_EQ(session.devices()[there->node], reference);
  }
  EXPECT_THAT(values(add(there, there)), ElementsAre(4, 8));
  EXPECT_GE(session.statistics().copies, 1u);
}

TEST_F(Realize, ReportsKernelsWithoutRunningThem) {
  const State a = host({8}, {1, 2, 3, 4, 5, 6, 7, 8});
  const State s = sum(mul(a, a), {0});
  std::vector<engine::KernelReport> reports;
  engine::TensorState* const one[] = {s.get()};
  EXPECT_EQ(kernels([&] { reports = session.kernels_of(one); }), 0u);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_THAT(reports[0].ast, testing::HasSubstr("reduce"));
  EXPECT_THAT(reports[0].source, testing::HasSubstr(reports[0].name));
  EXPECT_GT(reports[0].flops, 0);
}

TEST_F(Realize, ReadingAnotherSizeIsAUserError) {
  const State a = host({2}, {1, 2});
  std::byte few[4];
  EXPECT_THROW(session.read(*a, few), Error);
  try {
    session.item(*a);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::User);
    EXPECT_THAT(e.what(), testing::HasSubstr("2 elements"));
  }
}

TEST_F(Realize, UnknownDevicesAreNamed) {
  try {
    session.device_number("cudda");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::User);
    EXPECT_THAT(e.what(), testing::HasSubstr("cudda"));
  }
}

}  // namespace
