// The search for a schedule (BEAM), with times that the test makes up.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <utility>

#include "codegen/search/search.h"
#include "kernels.h"
#include "plugrad/error.h"
#include "run.h"

namespace plugrad::test {
namespace {

using codegen::KernelCode;
using codegen::ScheduleStep;
using List = codegen::KernelSchedule;
using Kind = ScheduleStep::Kind;

int64_t amount_of(const List& list, Kind kind) {
  for (const ScheduleStep& change : list)
    if (change.kind == kind) return change.amount;
  return 1;
}

// Minimum of 1 s at 8 lanes and an upcast by 2; each doubling of distance adds a second.
double made_up_seconds(const KernelCode& code) {
  const auto away = [&](Kind kind, double best) {
    return std::abs(std::log2(static_cast<double>(amount_of(code.schedule, kind)) / best));
  };
  return 1 + away(Kind::Vectorize, 8) + away(Kind::Upcast, 2) + away(Kind::Unroll, 1);
}

class BeamSearch : public testing::Test {
 protected:
  BeamSearch() {
    beam.width = 2;
    beam.seconds = 1000;
    beam.now = [this] { return time; };
    beam.measure = [this](std::span<const KernelCode* const> kernels) {
      ++calls;
      time += 1;
      std::vector<double> seconds;
      for (const KernelCode* kernel : kernels) {
        seconds.push_back(seconds_of(*kernel));
        measured.push_back(codegen::to_string(kernel->schedule));
      }
      return seconds;
    };
    beam.accept = [this](const codegen::Timed& timed) {
      accepted.push_back(codegen::to_string(timed.list));
      return true;
    };
  }
  codegen::BeamResult run() { return codegen::beam_search(ast.graph, ast.sink, caps, {}, beam); }
  bool was_measured(const std::string& list) const {
    return std::ranges::find(measured, list) != measured.end();
  }

  Ast ast = matmul(64, 64, 64);
  const pgr_device_caps caps = small_cpu();
  codegen::BeamOptions beam;
  std::function<double(const KernelCode&)> seconds_of = made_up_seconds;
  double time = 0;
  int calls = 0;
  std::vector<std::string> measured, accepted;
};

TEST_F(BeamSearch, finds_the_list_that_is_fastest) {
  const codegen::BeamResult result = run();
  EXPECT_TRUE(result.is_better);
  EXPECT_EQ(amount_of(result.list, Kind::Vectorize), 8) << codegen::to_string(result.list);
  EXPECT_EQ(amount_of(result.list, Kind::Upcast), 2) << codegen::to_string(result.list);
  EXPECT_EQ(amount_of(result.list, Kind::Unroll), 1) << codegen::to_string(result.list);
  EXPECT_EQ(result.seconds, 1);
  EXPECT_GT(result.first_seconds, 1);
}

TEST_F(BeamSearch, is_the_same_each_time) {
  run();
  const std::vector<std::string> first = std::exchange(measured, {});
  run();
  EXPECT_EQ(measured, first);
}

TEST_F(BeamSearch, measures_no_list_twice) {
  run();
  const std::string heuristic = measured[0];
  std::set<std::string> seen;
  size_t repeated = 0;
  for (const std::string& list : measured) repeated += seen.insert(list).second ? 0 : 1;
  // Each round times the best schedule so far too, and each new best beside the one before.
  EXPECT_LE(repeated, static_cast<size_t>(calls) + accepted.size() + 1);
}

TEST_F(BeamSearch, ends_with_its_budget_and_keeps_what_it_found) {
  beam.seconds = 6;
  const codegen::BeamResult result = run();
  EXPECT_LE(calls, 8);  // a new best is timed again, and once more for the result
  EXPECT_FALSE(accepted.empty());
  EXPECT_EQ(codegen::to_string(result.list), accepted.back());
}

TEST_F(BeamSearch, what_was_fast_by_chance_is_no_new_best) {
  std::set<std::string> seen;
  seconds_of =
      [&](const KernelCode& code) {  // the first time of each schedule but the heuristic's is short
        return seen.insert(codegen::to_string(code.schedule)).second && seen.size() > 1 ? 0.1 : 1.0;
      };
  EXPECT_FALSE(run().is_better);
  EXPECT_TRUE(accepted.empty());
}

// The copies of a local buffer do not belong to the register tile whose cost is predicted.
TEST(SearchSpace, lists_near_a_staged_one_have_a_cost) {
  pgr_device_caps large = small_cpu(16);
  large.vector_registers = 32;
  large.private_bytes = 512 << 10;
  const Ast product = matmul(512, 500, 512);
  const codegen::SearchSpace space(product.graph, product.sink, large, {});
  const codegen::Candidate start = space.chosen();
  ASSERT_NE(codegen::to_string(start.list).find("stage"), std::string::npos);
  EXPECT_LT(start.cost(), 512.0 * 500 * 512);
  const auto near = space.near(start.list);
  const auto has = [&](const char* part) {
    return std::ranges::any_of(near, [&](const codegen::Candidate& candidate) {
      return codegen::to_string(candidate.list).find(part) != std::string::npos;
    });
  };
  EXPECT_TRUE(has("block(2, 256) accumulate(2, 0) stage(2, 2)"));
  EXPECT_TRUE(has("stage(2, 1) stage(1, "));
}

// A program that ends waits for one prediction of a search in the background, not for all.
TEST(SearchSpace, asks_before_each_prediction_whether_to_go_on) {
  const Ast product = matmul(64, 64, 64);
  const pgr_device_caps caps = small_cpu(16);
  const codegen::SearchSpace space(product.graph, product.sink, caps, {});
  const size_t all = space.alternatives(100).size();
  ASSERT_GT(all, 8u);
  std::atomic<int> left = 5;
  EXPECT_LE(space.alternatives(100, [&] { return left-- > 0; }).size(), 5u);
  EXPECT_TRUE(space.alternatives(100, [] { return false; }).empty());
  EXPECT_EQ(space.alternatives(100, [] { return true; }).size(), all);
}

TEST_F(BeamSearch, never_gives_a_list_with_wrong_values) {
  beam.accept = [](const codegen::Timed&) { return false; };
  const codegen::BeamResult result = run();
  EXPECT_FALSE(result.is_better);
  EXPECT_EQ(codegen::to_string(result.list), measured[0]);
}

TEST_F(BeamSearch, survives_kernels_that_cannot_be_timed) {
  seconds_of = [](const KernelCode& code) {
    return amount_of(code.schedule, Kind::Vectorize) == 8 ? std::numeric_limits<double>::infinity()
                                                          : made_up_seconds(code);
  };
  EXPECT_NE(amount_of(run().list, Kind::Vectorize), 8);
}

TEST_F(BeamSearch, a_faster_machine_is_no_faster_kernel) {
  seconds_of = [this](const KernelCode&) { return 1 / (1.0 + calls); };
  EXPECT_FALSE(run().is_better);
  EXPECT_TRUE(accepted.empty());
}

TEST_F(BeamSearch, tries_seeds_first_and_ignores_those_that_are_not_legal) {
  beam.seeds = {codegen::parse_schedule("upcast(7, 4)"),
                codegen::parse_schedule("vectorize(1, 12) upcast(0, 2)")};
  beam.seconds = 2;
  run();
  EXPECT_TRUE(was_measured("vectorize(1, 12) upcast(0, 2)"));
  EXPECT_FALSE(was_measured("upcast(7, 4)"));
}

TEST_F(BeamSearch, hands_on_what_measuring_throws) {
  beam.measure = [](auto) -> std::vector<double> { throw std::runtime_error("interrupted"); };
  EXPECT_THROW(run(), std::runtime_error);
}

TEST_F(BeamSearch, refuses_lists_that_ask_for_endless_code) {
  const Ast large = matmul(1 << 20, 1 << 20, 64);
  const codegen::SearchSpace space(large.graph, large.sink, caps, {});
  EXPECT_FALSE(space.look(codegen::parse_schedule("upcast(0, 1048576)")));
  EXPECT_FALSE(space.look(codegen::parse_schedule("upcast(0, 1024) upcast(1, 1024)")));
  EXPECT_FALSE(space.look(List(100, ScheduleStep{Kind::Swap, 0, 1})));
  EXPECT_TRUE(space.look(codegen::parse_schedule("upcast(0, 4) vectorize(1, 4)")));
}

// A loop is split where a condition on its index changes; a schedule numbers the loops after the
// split.
TEST_F(BeamSearch, the_heuristics_list_makes_the_heuristics_kernel_of_pieces_too) {
  Ast joined;
  Graph& g = joined.graph;
  const Id i = make_range(g, 1000, 0, AxisKind::Loop);
  const Id a = load(g, param(g, 1, 1000, false), i);
  const Id twice = g.binary(Op::Mul, a, g.constant(DType::F32, 2.0));
  store(joined, param(g, 0, 1000, true), i,
        g.where(g.binary(Op::CmpLt, i, g.index(400)), a, twice));
  const List list = codegen::SearchSpace(g, joined.sink, caps, {}).chosen().list;
  const KernelCode chosen = codegen::generate(g, joined.sink, caps, {});
  ASSERT_GT(list.size(), 1u) << "one change a piece at least";
  EXPECT_EQ(codegen::generate(g, joined.sink, caps, {.schedule = &list}).ir, chosen.ir);
}

TEST_F(BeamSearch, every_neighbour_is_legal) {
  const Ast conv = conv2d({2, 3, 10, 10, 8, 3});
  pgr_device_caps groups = small_cpu(8);
  groups.has_local = 1;
  groups.subgroup_size = 16;
  for (uint32_t& size : groups.max_local_size) size = 64;
  groups.max_local_total = 64;
  groups.local_bytes = 4096;
  for (const pgr_device_caps& device : {caps, groups}) {
    const codegen::SearchSpace space(conv.graph, conv.sink, device, {});
    const auto near = space.near(space.chosen().list);
    EXPECT_GT(near.size(), 20u);
    for (size_t i = 0; i < near.size(); i += 7)
      EXPECT_NO_THROW(codegen::generate(conv.graph, conv.sink, device, {.schedule = &near[i].list}))
          << codegen::to_string(near[i].list);
  }
}

}  // namespace
}  // namespace plugrad::test
