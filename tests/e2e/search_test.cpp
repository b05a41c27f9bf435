// Searches on the CPU: crashing, hanging and wrong kernels, and BEAM from tensors to the database.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "base/log.h"
#include "fixture.h"
#include "plugrad/error.h"
#include "runtime/registry.h"
#include "tuning/helper/check_plan.h"
#include "tuning/helper/timing_helper.h"
#include "tuning/schedule_database.h"
#include "unit/base/temporary_directory.h"
#include "unit/codegen/kernels.h"

namespace plugrad::e2e {
namespace {

using codegen::KernelCode;
using test::Ast;
using tuning::TimingHelper;

constexpr int64_t kSize = 4096;

class MeasuredKernels : public testing::Test {
 protected:
  KernelCode code(const Ast& ast, std::string_view name) {
    return codegen::generate(ast.graph, ast.sink, device.caps(), {.name = name});
  }
  // out[i] = a[i] + add
  KernelCode plus(double add, std::string_view name) {
    Ast ast;
    Graph& g = ast.graph;
    const Id i = make_range(g, kSize, 0, AxisKind::Loop);
    const Id a = test::load(g, test::param(g, 1, kSize, false), i);
    test::store(ast, test::param(g, 0, kSize, true), i,
                g.binary(Op::Add, a, g.constant(DType::F32, add)));
    return code(ast, name);
  }
  // Writes far out of bounds.
  KernelCode crashing() {
    Ast ast;
    Graph& g = ast.graph;
    const Id i = make_range(g, kSize, 0, AxisKind::Loop);
    test::store(ast, test::param(g, 0, int64_t{1} << 45, true),
                test::affine(g, i, int64_t{1} << 32, i), g.constant(DType::F32, 1.0));
    return code(ast, "crashing");
  }
  // Runs for days.
  KernelCode hanging() {
    Ast ast;
    Graph& g = ast.graph;
    const Id k = make_range(g, int64_t{1} << 50, 0, AxisKind::Reduce);
    const Id index = g.add(Op::FloorMod, DType::Index, {k, g.index(kSize)});
    const Id a = test::load(g, test::param(g, 1, kSize, false), index);
    test::store(ast, test::param(g, 0, kSize, true), g.index(0), test::reduce(g, Op::Add, a, {k}));
    return code(ast, "hanging");
  }
  std::vector<tuning::ParamSpec> params() {
    const auto f32 = static_cast<uint32_t>(DType::F32);
    return {{kSize, f32, PGR_PARAM_WRITE, 0}, {kSize, f32, PGR_PARAM_READ, 0}};
  }

  runtime::Device& device = runtime::Registry::instance().find_device("CPU");
  TimingHelper measurer{device, {2, 30}};
};

TEST_F(MeasuredKernels, are_timed_though_others_crash_and_hang) {
  measurer.set_params(params());
  const KernelCode good = plus(1, "good"), crash = crashing(), hang = hanging(),
                   other = plus(2, "other");
  const KernelCode* const all[] = {&good, &crash, &hang, &other};
  const auto timings = measurer.time(all, {});
  EXPECT_TRUE(std::isfinite(timings[0].seconds)) << timings[0].problem;
  EXPECT_TRUE(std::isfinite(timings[3].seconds)) << timings[3].problem;
  EXPECT_LT(timings[0].seconds, 0.1);
  EXPECT_THAT(timings[1].problem, testing::HasSubstr("signal"));
  EXPECT_TRUE(timings[1].is_dangerous);
  EXPECT_THAT(timings[2].problem, testing::HasSubstr("had not ended after 2.0 s"));
  EXPECT_EQ(measurer.losses(), 2u);
}

TEST_F(MeasuredKernels, are_wrong_where_one_value_is) {
  measurer.set_params(params());
  const KernelCode right = plus(1, "right"), same = plus(1, "same"), wrong = plus(1.001, "wrong"),
                   crash = crashing();
  EXPECT_EQ(measurer.check(same, right, {}, {.tolerance = 1e-5}), "");
  EXPECT_THAT(measurer.check(wrong, right, {}, {.tolerance = 1e-5}),
              testing::HasSubstr("should be"));
  EXPECT_THAT(measurer.check(crash, right, {}, {}), testing::HasSubstr("signal"));
  EXPECT_EQ(measurer.check(same, right, {}, {.tolerance = 1e-5}), "");  // by a new helper process
}

TEST_F(MeasuredKernels, that_need_more_memory_than_there_is_are_an_error) {
  measurer.set_params({{uint64_t{1} << 45, static_cast<uint32_t>(DType::F32), PGR_PARAM_WRITE, 0}});
  const KernelCode good = plus(1, "good");
  const KernelCode* const one[] = {&good};
  EXPECT_THROW(measurer.time(one, {}), Error);
}

class Beam : public SessionTest {
 protected:
  Beam() {
    set_log_sink([](std::string_view text, void* to) { *static_cast<std::string*>(to) += text; },
                 &log);
    session.clear_caches();
  }
  ~Beam() override { set_log_sink(nullptr, nullptr); }

  // Row sums of products, 192 x 192 x 64, of small integers: exact in every order.
  std::vector<float> product(int beam, double seconds = 2) {
    const SettingScope scope([&](Settings& s) {
      s.beam = beam;
      s.beam_seconds = seconds;
      s.schedule_database = path;
    });
    session.clear_caches();
    const int64_t m = 192, k = 64;
    std::vector<float> a, b;
    for (int64_t i = 0; i < m * k; ++i) {
      a.push_back(static_cast<float>(i % 7 - 3));
      b.push_back(static_cast<float>(i % 5 - 2));
    }
    const State left =
        with_list(Op::Expand, with_list(Op::Reshape, host({m, k}, a), {m, 1, k}), {m, m, k});
    const State right =
        with_list(Op::Expand, with_list(Op::Reshape, host({m, k}, b), {1, m, k}), {m, m, k});
    const State out = sum(mul(left, right), {2});
    report = session.kernels_of(std::vector{out.get()})[0];
    return values(out);
  }
  tuning::ScheduleDatabase db() { return tuning::ScheduleDatabase(path); }
  std::string contents() {
    std::string lines;
    for (const auto& record : db().all()) lines += tuning::to_line(record) + "\n";
    return lines;
  }
  // Replaces the schedule of every kernel in the database.
  void replace_lists(const std::string& list) {
    for (auto& record : db().all()) {
      record.list = list;
      db().add(record);
    }
  }

  TemporaryDirectory directory;
  const std::string path = directory / "search.db";
  std::string log;
  engine::KernelReport report;
};

TEST_F(Beam, finds_a_list_within_its_budget_that_is_used_without_it_too) {
  const std::vector<float> expected = product(0);
  EXPECT_FALSE(std::filesystem::exists(path));
  const uint64_t begin = monotonic_ns();
  EXPECT_EQ(product(2), expected);
  EXPECT_LT(static_cast<double>(monotonic_ns() - begin) * 1e-9,
            30);  // includes the helper's start on a busy machine
  ASSERT_GE(db().all().size(), 1u);
  EXPECT_EQ(db().all()[0].width, 2u);
  EXPECT_EQ(report.optimisations, db().all()[0].list);
  EXPECT_EQ(log, "");
  const std::string found = contents();
  product(2);  // not searched again
  EXPECT_EQ(contents(), found);

  replace_lists("upcast(0, 2) vectorize(1, 8)");
  EXPECT_EQ(product(0), expected);
  EXPECT_EQ(report.optimisations, "upcast(0, 2) vectorize(1, 8)");
  EXPECT_EQ(log, "");
}

TEST_F(Beam, and_what_it_found_are_passed_over_where_schedules_are_fixed) {
  const auto fixed = [](Settings& s) { s.deterministic = true; };
  std::vector<float> expected;
  std::string heuristic;
  {
    const SettingScope scope(fixed);
    expected = product(0);
    heuristic = report.optimisations;
  }
  product(1, 0.3);
  replace_lists("upcast(0, 2) vectorize(1, 8)");
  const std::string found = contents();
  const SettingScope scope(fixed);
  for (int beam : {0, 2}) {
    EXPECT_EQ(product(beam), expected);
    EXPECT_EQ(report.optimisations, heuristic);
    EXPECT_NE(report.optimisations, "upcast(0, 2) vectorize(1, 8)");
  }
  EXPECT_EQ(contents(), found);
}

TEST_F(Beam, ignores_lists_that_are_not_legal_with_one_warning) {
  const std::vector<float> expected = product(1, 0.3);
  for (const char* list : {"upcast(9, 4)", "upcast(0, 4", "fly(0, 1)",
                           "upcast(0, 192) upcast(1, 192) unroll(2, 64)"}) {
    replace_lists(list);
    EXPECT_EQ(product(0), expected);
    EXPECT_NE(report.optimisations, list);
  }
  EXPECT_THAT(log, testing::HasSubstr("is not used"));
  EXPECT_EQ(log.find("is not used"), log.rfind("is not used"));
}

TEST_F(Beam, works_with_a_database_of_nonsense) {
  std::ofstream(path) << "SQLite format 3" << std::string(5000, '\0') << "nonsense";
  const std::vector<float> expected = product(0);
  EXPECT_EQ(product(1, 0.3), expected);
  EXPECT_THAT(log, testing::HasSubstr("the file is damaged and was set aside"));
  EXPECT_GE(db().all().size(), 1u);
}

TEST_F(Beam, with_a_budget_that_is_none_is_an_error) {
  for (double seconds : {0.0, -1.0, std::nan("")}) EXPECT_THROW(product(2, seconds), Error);
  EXPECT_EQ(product(2, 0.3), product(0));  // nothing was lost
}

}  // namespace
}  // namespace plugrad::e2e
