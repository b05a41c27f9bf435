// Access patterns: the kernel loops that run along the axes of the values read.
#include "schedule/layout/access_patterns.h"

#include <bit>

#include "check.h"
#include "schedule/layout/layout_cost.h"

namespace plugrad::test {
namespace {

struct Nest {
  schedule::Options options;
  schedule::SchedulerState state;
  schedule::LoopNest nest;
  Nest(const Tensors& t, Id root)
      : state(t.g, std::span(&root, 1), t.inputs, 1, options), nest(read(state)) {}

 private:
  static schedule::LoopNest read(schedule::SchedulerState& state) {
    schedule::run_until(state, "choose layouts");
    return schedule::loop_nest(state, state.roots[0]);
  }
};

}  // namespace

// The next element along a joined axis is that of the last axis, which codegen cannot change.
TEST(AccessPatterns, ALoopOverJoinedAxesTakesTheNeighboursOfTheLast) {
  Tensors t;
  const Nest made(t, t.relu(t.reshape(t.buffer({4, 1, 8, 1}), {32})));
  ASSERT_EQ(made.nest.accesses.size(), 1u);
  const auto& axes = made.nest.accesses[0].axes;
  EXPECT_EQ(axes[0].loops, 1u);
  EXPECT_EQ(axes[0].near, 0u);
  EXPECT_EQ(axes[2].loops, 1u);
  EXPECT_EQ(axes[2].near, 1u);
}

// The order of a sum is free: its loop is split into one loop per axis that it runs over.
TEST(AccessPatterns, ASumOverJoinedAxesTakesTheNeighboursOfEach) {
  Tensors t;
  const Nest made(t, t.sum(t.reshape(t.buffer({6, 4, 8}), {2, 96}), {1}));
  ASSERT_EQ(made.nest.accesses.size(), 1u);
  ASSERT_EQ(made.nest.loops.size(), 2u);
  const auto& axes = made.nest.accesses[0].axes;
  EXPECT_EQ(axes[0].loops, 3u);
  for (const auto& axis : axes) EXPECT_EQ(axis.near, 2u);
}

// The maximum of a row is the same for all terms of the sum over the row.
TEST(AccessPatterns, ASumInsideASumIsTakenOnceForAllItsTerms) {
  Tensors t;
  const Id x = t.buffer({5, 7});
  const Nest made(t, t.sum(t.exp(t.sub(x, t.max(x, {1}))), {1}));
  ASSERT_EQ(made.nest.loops.size(), 3u);  // rows, those of the sum, and those of the maximum
  ASSERT_EQ(made.nest.bodies.size(), 3u);
  for (const schedule::LoopSet around : made.nest.bodies)
    EXPECT_LE(std::popcount(around), 2) << around;
  for (const auto& access : made.nest.accesses) EXPECT_EQ(std::popcount(access.around), 2);
}

// Three quarters of the registers hold sums: 12 of 16, 24 of 32. Beside 12 sums, tiles of 2 vectors
// and 6 rows load 8 values, those of a vector and 12 rows 13.
TEST(AccessPatterns, ARegisterTileSharesWhatIsLoaded) {
  Tensors t;
  Nest made(t, t.matmul(t.buffer({96, 64}), t.buffer({64, 96})));
  ASSERT_EQ(made.nest.loops.size(), 3u);
  for (const double registers : {16.0, 32.0}) {
    made.nest.tiles.clear();
    cost::Machine machine;
    machine.registers = registers;
    schedule::add_tiles(made.nest, machine, 8);
    ASSERT_EQ(made.nest.tiles.size(), 4u);
    for (size_t lane : {0, 1}) {
      const std::vector<double>& tile = made.nest.tiles[lane];
      EXPECT_EQ(tile[0] * tile[1], registers * 3 / 4);
      EXPECT_LE(std::abs(tile[0] - tile[1]), 4);
      EXPECT_EQ(tile[2], 1);
    }
  }
}

// A row's maximum is computed once per row if the row's elements are innermost in the output;
// otherwise it is recomputed for each element.
TEST(AccessPatterns, ASumOfRowsIsTakenOnceWhereRowsAreInnermost) {
  Tensors t;
  const Id x = t.buffer({4, 32, 32});
  Nest made(t, t.sub(x, t.max(x, {2})));
  schedule::add_tiles(made.nest, made.options.machine, 8);
  const auto cost = [&](uint32_t axis) {
    const schedule::Innermost innermost(made.state.graph.size(), axis);
    return schedule::LayoutCost(made.nest, innermost, made.options.machine, 8, true, 0).least();
  };
  EXPECT_LT(cost(2) * 2, cost(1));
}

}  // namespace plugrad::test
