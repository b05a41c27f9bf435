// Times and memory of small steps, computed by hand, and the specs that are found for steps where
// the best one is known.
#include "scale/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plugrad/error.h"
#include "steps.h"

namespace plugrad::tools::scale {
namespace {

using sharding::AxisSet;
using testing::HasSubstr;

struct Case {
  explicit Case(Program of, std::string machine_text = kRound, const std::string& axes = "all=2")
      : program(std::move(of)),
        machine(parse_machine(machine_text, "FILE")),
        mesh(make_mesh(parse_axes(axes), machine.devices(), machine.name)),
        estimator(program, machine) {}

  Estimate estimate(AxisSet batch, AxisSet state, std::vector<AxisSet> parameter) {
    return estimator.estimate(mesh, {batch, state, {std::move(parameter)}});
  }
  SearchResult search(const SearchOptions& options = {}) {
    return scale::search(program, machine, mesh, estimator, options);
  }

  Program program;
  Machine machine;
  sharding::Mesh mesh;
  Estimator estimator;
};

const Traffic* traffic_of(const Estimate& estimate, CollectiveKind kind) {
  for (const Traffic& traffic : estimate.traffic)
    if (traffic.kind == kind) return &traffic;
  return nullptr;
}

TEST(Estimate, OneDeviceMovesNothing) {
  Case one(linear_program(8, 4, 6), kRound, "all=1");
  const Estimate made = one.estimate(0, 0, {0, 0});
  EXPECT_TRUE(made.traffic.empty());
  EXPECT_NEAR(made.exposed_at_best_seconds, 0, 1e-15);
  EXPECT_EQ(made.memory.parameters, 96u);
  EXPECT_EQ(made.memory.state, 96u);
  EXPECT_EQ(made.memory.batch, 128u);
}

TEST(Estimate, DataParallelReducesTheLossAndTheGradient) {
  Case two(linear_program(8, 4, 6));
  const Estimate made = two.estimate(1, 0, {0, 0});
  ASSERT_EQ(made.traffic.size(), 1u);
  EXPECT_EQ(made.traffic[0].kind, CollectiveKind::AllReduce);
  EXPECT_EQ(made.traffic[0].count, 1u);  // in a bucket
  EXPECT_EQ(made.traffic[0].bytes, 4 + 96);
  EXPECT_DOUBLE_EQ(made.communication_seconds, 2 * (1e-6 + 0.5 * 100e-9));
  EXPECT_EQ(made.memory.batch, 64u);
  EXPECT_EQ(made.memory.parameters, 96u);
}

TEST(Estimate, CutStateScattersTheGradientAndGathersTheParameter) {
  Case two(linear_program(8, 4, 6));
  const Estimate made = two.estimate(1, 1, {0, 0});
  const Traffic* const scattered = traffic_of(made, CollectiveKind::ReduceScatter);
  const Traffic* const gathered = traffic_of(made, CollectiveKind::AllGather);
  ASSERT_TRUE(scattered != nullptr && gathered != nullptr);
  EXPECT_EQ(scattered->bytes, 96);
  EXPECT_DOUBLE_EQ(scattered->seconds, 1e-6 + 0.5 * 96e-9);
  EXPECT_EQ(gathered->bytes, 96);
  EXPECT_EQ(made.memory.state, 48u);
}

TEST(Estimate, ACutWeightMovesNoGradient) {
  Case two(linear_program(8, 4, 6));
  const Estimate made = two.estimate(0, 0, {0, 1});
  ASSERT_EQ(made.traffic.size(), 1u);  // the loss
  EXPECT_EQ(made.traffic[0].bytes, 4);
  EXPECT_EQ(made.memory.parameters, 48u);
  EXPECT_EQ(made.memory.state, 48u);
  EXPECT_EQ(made.memory.batch, 128u);
}

/// The times of the kernels of the step on one device, `factor` times as long as estimated.
Measured measured_of(const Program& program, const Machine& machine, double factor) {
  const sharding::Mesh one = make_mesh({{"one", 1}}, 1, "");
  const Part part = part_of(program, one, replicated(program));
  schedule::Options options = machine.device.planning;
  for (uint32_t i = 0; i < part.leaves.size(); ++i)
    if (program.leaves[part.leaves[i]].root) options.replaced.push_back(i);
  const schedule::Plan plan =
      schedule::make_plan(part.graph, part.roots, part.inputs, kDevice, options);
  Measured measured{.device = machine.device.name, .kernel_seconds = {}, .host_seconds = 0.25};
  for (const schedule::Step& step : plan.steps) {
    const KernelWork work = work_of(*plan.asts[step.ast]);
    measured.kernel_seconds[work.traced] = factor * kernel_seconds(machine, work, false);
  }
  return measured;
}

TEST(Estimate, MeasuredKernelsOfTheDeviceCorrectTheModel) {
  Program program = linear_program(64, 32, 16);
  Case plain(linear_program(64, 32, 16));
  program.measured = measured_of(program, plain.machine, 3);
  Case corrected(linear_program(64, 32, 16));
  corrected.program.measured = program.measured;
  Estimator estimator(corrected.program, corrected.machine);
  EXPECT_TRUE(estimator.is_corrected());
  EXPECT_FALSE(plain.estimator.is_corrected());
  const Estimate a = plain.estimate(1, 0, {0, 0});
  const Estimate b = estimator.estimate(corrected.mesh, {1, 0, {{0, 0}}});
  EXPECT_NEAR(b.matrix_seconds / a.matrix_seconds, 3, 1e-9);
  EXPECT_NEAR(b.other_seconds / a.other_seconds, 3, 1e-9);
  EXPECT_EQ(b.host_seconds, 0.25);
  EXPECT_EQ(a.communication_seconds, b.communication_seconds);
  program.measured->device = "another";
  EXPECT_FALSE(Estimator(program, plain.machine).is_corrected());
}

TEST(Estimate, KernelsTakeTheLongerOfOperationsAndBytes) {
  Machine machine = parse_machine(kRound, "FILE");
  machine.device.matrix_rate[DType::BF16] = 4e9;
  machine.device.efficiency = {.matrix = 0.5, .vector = 0.25, .memory = 0.5};
  machine.shared_compute = 0.5;
  KernelWork work{.flops = 2e6, .bytes = 1e3, .written = {}};
  EXPECT_DOUBLE_EQ(kernel_seconds(machine, work, false), 1e-6 + 2e6 / 0.25e9);
  work.is_matrix = true;
  work.factor = DType::BF16;
  EXPECT_DOUBLE_EQ(kernel_seconds(machine, work, false), 1e-6 + 2e6 / 2e9);
  EXPECT_DOUBLE_EQ(kernel_seconds(machine, work, true), 1e-6 + 2e6 / 1e9);
  work.bytes = 1e6;
  EXPECT_DOUBLE_EQ(kernel_seconds(machine, work, false), 1e-6 + 1e6 / 0.5e9);
}

TEST(Search, ATinyBatchAndAHugeWeightCutTheWeight) {
  Case two(linear_program(2, 1024, 1024));
  const Tried best = two.search().tried[0];
  EXPECT_EQ(best.layout.batch, 0u);
  EXPECT_NE(best.layout.groups[0][0] | best.layout.groups[0][1], 0u);
}

std::string round_with(const std::string& key, double value) {
  nlohmann::json machine = nlohmann::json::parse(kRound);
  machine["device"][key] = value;
  return machine.dump();
}

TEST(Search, AHugeBatchAndATinyWeightCutTheBatch) {
  // With slow memory the time is that of reading the batch.
  Case two(linear_program(65536, 8, 8), round_with("memory_gigabytes_per_second", 0.01));
  const Tried best = two.search().tried[0];
  EXPECT_EQ(best.layout.batch, 1u);
}

TEST(Search, StateIsCutWhereMemoryIsShort) {
  const SearchOptions given{.batch = 1, .groups = {{0, {0, 0}}}};
  Case roomy(linear_program(64, 1024, 1024));
  const uint64_t whole = roomy.estimate(1, 0, {0, 0}).memory.total();
  const uint64_t cut = roomy.estimate(1, 1, {0, 0}).memory.total();
  ASSERT_LT(cut, whole);
  Case narrow(linear_program(64, 1024, 1024),
              round_with("memory_gigabytes", static_cast<double>(cut + whole) / 2 * 1e-9));
  const SearchResult found = narrow.search(given);
  ASSERT_EQ(found.tried.size(), 2u);
  EXPECT_EQ(found.tried[0].layout.state, 1u);
  EXPECT_TRUE(found.tried[0].fits);
  EXPECT_FALSE(found.tried[1].fits);
}

TEST(Search, GivenSpecsAloneAreTried) {
  Case two(linear_program(8, 4, 6));
  const SearchResult result =
      two.search({.batch = 1, .state = 1, .groups = {{0, {0, 0}}}, .only_given = true});
  ASSERT_EQ(result.tried.size(), 1u);
  EXPECT_EQ(result.tried[0].layout.state, 1u);
}

TEST(Meshes, WrongOnesAreRefused) {
  const auto error_of = [](const std::string& axes) -> std::string {
    try {
      make_mesh(parse_axes(axes), 4, "round");
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of("data=2,model=2"), "no error");
  EXPECT_THAT(error_of("data=2,data=2"), HasSubstr("names the axis data twice"));
  EXPECT_THAT(error_of("data=8"), HasSubstr("more positions than round has devices, 4"));
  for (const char* axes : {"", "data", "=2", "data=", "data=0", "data=-1", "data=2,", "data=2x"})
    EXPECT_THAT(error_of(axes), HasSubstr("is no axis")) << axes;
}

}  // namespace
}  // namespace plugrad::tools::scale
