// Which loops of a kernel run along the axes of the values that it reads.
#include "schedule/readings.h"

#include <bit>

#include "check.h"

namespace plugrad::test {
namespace {

struct Nest {
  schedule::Options options;
  schedule::Draft draft;
  schedule::LoopNest nest;
  Nest(const Tensors& t, Id root)
      : draft(t.g, std::span(&root, 1), t.inputs, 1, options), nest(read(draft)) {}

 private:
  static schedule::LoopNest read(schedule::Draft& draft) {
    schedule::simplify_tensors(draft);
    schedule::link_consumers(draft);
    schedule::choose_stored(draft);
    return schedule::loop_nest(draft, draft.roots[0]);
  }
};

}  // namespace

// The next element along a joined axis is that of the last axis, which codegen cannot change.
TEST(Readings, ALoopOverJoinedAxesTakesTheNeighboursOfTheLast) {
  Tensors t;
  const Nest made(t, t.relu(t.reshape(t.buffer({4, 1, 8, 1}), {32})));
  ASSERT_EQ(made.nest.readings.size(), 1u);
  const auto& axes = made.nest.readings[0].axes;
  EXPECT_EQ(axes[0].loops, 1u);
  EXPECT_EQ(axes[0].near, 0u);
  EXPECT_EQ(axes[2].loops, 1u);
  EXPECT_EQ(axes[2].near, 1u);
}

// A sum may be taken in any order: its loop becomes one for each axis that it runs over.
TEST(Readings, ASumOverJoinedAxesTakesTheNeighboursOfEach) {
  Tensors t;
  const Nest made(t, t.sum(t.reshape(t.buffer({6, 4, 8}), {2, 96}), {1}));
  ASSERT_EQ(made.nest.readings.size(), 1u);
  ASSERT_EQ(made.nest.loops.size(), 2u);
  const auto& axes = made.nest.readings[0].axes;
  EXPECT_EQ(axes[0].loops, 3u);
  for (const auto& axis : axes) EXPECT_EQ(axis.near, 2u);
}

// The maximum of a row is the same for all terms of the sum over the row.
TEST(Readings, ASumInsideASumIsTakenOnceForAllItsTerms) {
  Tensors t;
  const Id x = t.buffer({5, 7});
  const Nest made(t, t.sum(t.exp(t.sub(x, t.max(x, {1}))), {1}));
  ASSERT_EQ(made.nest.loops.size(), 3u);  // rows, those of the sum and of the maximum
  ASSERT_EQ(made.nest.bodies.size(), 3u);
  for (const schedule::LoopSet around : made.nest.bodies)
    EXPECT_LE(std::popcount(around), 2) << around;
  for (const auto& reading : made.nest.readings) EXPECT_EQ(std::popcount(reading.around), 2);
}

}  // namespace plugrad::test
