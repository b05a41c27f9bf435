// Memory over a process's lifetime: loops do not grow, dead values are freed, and running out of
// memory leaves the state unchanged.
#include <gmock/gmock.h>

#include "base/settings.h"
#include "e2e/fixture.h"
#include "plugrad/error.h"

using namespace plugrad;
using testing::ElementsAre;

namespace {

class Memory : public e2e::SessionTest {};

TEST_F(Memory, ALoopOfTenThousandStepsStaysFlat) {
  const State weight = host({16}, std::vector<float>(16, 1));
  session.set_requires_grad(*weight, true);
  const auto step = [&] {
    const State x = host({16}, std::vector<float>(16, 0.5f));
    const State loss = sum(mul(weight, x), {0});
    session.end_tape(*loss);
    session.note_loss(loss);
    {
      const engine::Session::Lock lock(session);
      Graph& g = session.graph();
      const Id half = g.binary(Op::Mul, weight->node, g.constant(DType::F32, 0.5));
      session.assign(*weight, g.binary(Op::Add, half, x->node));
    }
    session.step_realize();
  };
  for (int i = 0; i < 2000; ++i) step();
  session.collect();
  const auto early = session.statistics();
  uint64_t most_bytes = 0, most_nodes = 0;
  for (int i = 0; i < 8000; ++i) {
    step();
    if (i % 500 != 0) continue;
    const auto now = session.statistics();
    most_bytes = std::max(most_bytes, now.value_bytes);
    most_nodes = std::max(most_nodes, now.graph_nodes);
  }
  session.collect();
  EXPECT_EQ(session.statistics().graph_nodes, early.graph_nodes);
  EXPECT_EQ(session.statistics().value_bytes, early.value_bytes);
  EXPECT_LT(most_nodes, 40000u);
  EXPECT_LT(most_bytes, 4u << 20);
  EXPECT_THAT(values(weight)[0], 1.0f);
}

TEST_F(Memory, LargeDeadValuesServeTheNextOnes) {
  const auto used = [&] { return session.statistics().value_bytes; };
  const State one = constant(1);
  session.collect();
  const uint64_t before = used();
  State x = host({1 << 20}, std::vector<float>(1 << 20, 0));
  for (int i = 0; i < 20; ++i) {
    x = add(x, one);
    session.realize(*x);
  }
  EXPECT_LT(used(), before + (5u << 22))
      << "dead megabytes are found when memory is wanted, not after thousands of nodes";
  EXPECT_EQ(values(x)[0], 20);
}

TEST_F(Memory, CollectKeepsWhatLiveTensorsReach) {
  const State a = host({3}, {1, 2, 3});
  const State lazy = mul(add(a, a), a);
  const State view = with_list(Op::Reshape, lazy, {3, 1});
  {
    const State dead = add(lazy, a);
  }
  session.collect();
  EXPECT_THAT(values(view), ElementsAre(2, 8, 18));
  EXPECT_THAT(values(lazy), ElementsAre(2, 8, 18));
  session.collect();
  EXPECT_THAT(values(lazy), ElementsAre(2, 8, 18));
  EXPECT_THAT(values(add(a, lazy)), ElementsAre(3, 10, 21));
}

TEST_F(Memory, TheTapeKeepsInputsAlive) {
  const State weight = host({2}, {3, 4});
  session.set_requires_grad(*weight, true);
  State input = host({2}, {5, 6});
  const State product = mul(weight, input);
  session.realize(*product);
  input.reset();
  session.collect();
  EXPECT_EQ(session.graph()[product->node].op, Op::Mul);
  const engine::Session::Lock lock(session);
  const auto sources = session.graph().sources(product->node);
  const Id other = sources[0] == weight->node ? sources[1] : sources[0];
  const State again = session.make(other);
  EXPECT_THAT(values(again), ElementsAre(5, 6));
}

TEST_F(Memory, RunningOutLeavesTensorsAsTheyWere) {
  const State small = host({4}, {1, 2, 3, 4});
  const State sum_of_small = add(small, small);
  session.realize(*sum_of_small);
  const State wide = with_list(
      Op::Expand,
      with_list(Op::Reshape, host({1 << 15}, std::vector<float>(1 << 15, 1)), {1, 1 << 15}),
      {64, 1 << 15});
  const State product = add(wide, constant(2));
  {
    const SettingScope tight([](Settings& s) { s.memory_limit_bytes = 4 << 20; });
    try {
      session.realize(*product);
      FAIL() << "8 MiB fit into 4";
    } catch (const OutOfMemoryError& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr("PLUGRAD_MEMORY_LIMIT"));
    }
    EXPECT_FALSE(session.is_realized(*product));
    EXPECT_THAT(values(sum_of_small), ElementsAre(2, 4, 6, 8));
    EXPECT_THAT(values(add(small, sum_of_small)), ElementsAre(3, 6, 9, 12))
        << "there is room for this one";
  }
  EXPECT_EQ(values(product)[5], 3) << "with memory it works";
}

}  // namespace
