#include "cost/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plugrad::cost {
namespace {

using Kind = Probe::Kind;

// A processor of 2 GHz with two threads and 32-byte vectors: per cycle 2 multiply-adds (latency 4
// cycles), 3 loads, 1 store. A vector takes 1 cycle from L2, 2 from L3, 8 from memory; two threads
// have the same memory bandwidth as one. A kernel launch takes 1000 cycles.
struct Made {
  double clock = 2e9;
  double threads = 2;

  double cycles(const Probe& probe) const {
    switch (probe.kind) {
      case Kind::Chain:
        return 1;
      case Kind::MultiplyAdds:
        return 0.5;
      case Kind::Latency:
        return 4;
      case Kind::Loads:
        return probe.bytes <= 32'768       ? 1 / 3.0
               : probe.bytes <= 524'288    ? 1
               : probe.bytes <= 16'777'216 ? 2
                                           : (probe.all ? 16 : 8);
      case Kind::Stores:
        return 1;
      case Kind::Wake:
        return probe.all ? 1500 : 500;
    }
    return 0;
  }
  Sample sample(const Probe& probe) const { return {1000 * cycles(probe) / clock, 1000}; }
};

Machine table() {
  Machine m;
  m.lanes = 8;
  m.threads = 2;
  return m;
}

// Time for this number of runs.
std::function<double()> time_for(int runs) {
  return [left = runs]() mutable { return left-- > 0 ? 1.0 : 0.0; };
}

TEST(Calibrate, finds_the_figures_of_a_made_up_processor) {
  const Made made;
  std::string problem;
  const auto found =
      calibrate(table(), [&](const Probe& p) { return made.sample(p); }, time_for(2), problem);
  ASSERT_TRUE(found) << problem;
  EXPECT_DOUBLE_EQ(found->cycles_a_second, 2e9);
  EXPECT_DOUBLE_EQ(found->multiply_adds, 2);
  EXPECT_DOUBLE_EQ(found->latency, 4);
  EXPECT_DOUBLE_EQ(found->loads, 3);
  EXPECT_DOUBLE_EQ(found->stores, 1);
  EXPECT_DOUBLE_EQ(found->levels[0].one, 96);
  EXPECT_DOUBLE_EQ(found->levels[0].all, 192);
  EXPECT_DOUBLE_EQ(found->levels[1].one, 32);
  EXPECT_DOUBLE_EQ(found->levels[2].all, 32);
  EXPECT_DOUBLE_EQ(found->memory().one, 4);
  EXPECT_DOUBLE_EQ(found->memory().all, 4);
  EXPECT_DOUBLE_EQ(found->wake_cycles, 1000);
  // 4 bytes a cycle for 2 threads x 8 lanes x 2: an eighth of a byte.
  EXPECT_DOUBLE_EQ(found->bytes_an_operation(), 0.125);
  EXPECT_DOUBLE_EQ(found->kernel_cost(), 2000);
}

// The clock drops to a third after some probes, and rises again.
TEST(Calibrate, gives_up_where_the_clock_changes) {
  int count = 0;
  const auto changing = [&](const Probe& p) {
    Made made;
    if (++count / 5 % 2 == 1) made.clock /= 3;
    return made.sample(p);
  };
  std::string problem;
  EXPECT_FALSE(calibrate(table(), changing, time_for(8), problem));
  EXPECT_THAT(problem, testing::HasSubstr(" and then "));
}

TEST(Calibrate, takes_the_first_two_runs_that_agree) {
  int count = 0;
  const auto settling = [&](const Probe& p) {
    Made made;
    if (p.kind == Kind::Chain) ++count;
    if (count == 1) made.clock = 5e8;  // wakes up slowly
    return made.sample(p);
  };
  std::string problem;
  ASSERT_TRUE(calibrate(table(), settling, time_for(8), problem)) << problem;
  EXPECT_EQ(count, 3);
}

// On a loaded machine the second thread starts after the first has done all the work.
TEST(Calibrate, refuses_threads_that_take_turns) {
  const auto in_turns = [&](const Probe& p) {
    Sample sample = Made().sample(p);
    if (p.all) sample.seconds *= 2;
    return sample;
  };
  std::string problem;
  EXPECT_FALSE(calibrate(table(), in_turns, time_for(8), problem));
  EXPECT_THAT(problem, testing::HasSubstr("did not run at once"));
}

TEST(Calibrate, needs_two_runs) {
  const Made made;
  std::string problem;
  EXPECT_FALSE(
      calibrate(table(), [&](const Probe& p) { return made.sample(p); }, time_for(1), problem));
  EXPECT_EQ(problem, "there was no time for two runs");
}

TEST(Calibrate, refuses_times_that_cannot_be) {
  for (double seconds : {0.0, -1.0, 1e30, std::numeric_limits<double>::quiet_NaN(),
                         std::numeric_limits<double>::infinity()}) {
    std::string problem;
    EXPECT_FALSE(calibrate(
        table(), [&](const Probe&) { return Sample{seconds, 1000}; }, time_for(4), problem))
        << seconds;
    EXPECT_THAT(problem, testing::HasSubstr("not within")) << seconds;
  }
}

}  // namespace
}  // namespace plugrad::cost
