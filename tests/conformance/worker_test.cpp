// The suite survives what plugins do, and says what they did.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "conformance/suite_run.h"

namespace plugrad::conformance {
namespace {

using testing::HasSubstr;

// One test that launches a kernel, and one behind it that does not.
constexpr const char* kLaunches = "l1.launch.groups.2x1x1";
constexpr const char* kLaunchesNothing = "l1.device.info";

Report run_faulty(const std::string& fault) {
  Options options = faulty_options(fault, std::string(kLaunches) + "," + kLaunchesNothing);
  options.time_limit_factor = 0.1;
  return run_suite(options);
}

struct Fault {
  const char* name;
  Status status;
  const char* message;
};

class FaultInALaunch : public testing::TestWithParam<Fault> {};

TEST_P(FaultInALaunch, IsOneResultAndTheSuiteGoesOn) {
  const Report report = run_faulty(GetParam().name);
  ASSERT_EQ(report.tests.size(), 2u);
  const TestResult& result = result_of(report, kLaunches);
  EXPECT_EQ(to_string(result.status), std::string(to_string(GetParam().status)));
  EXPECT_THAT(result.message, HasSubstr(GetParam().message));
  EXPECT_EQ(result_of(report, kLaunchesNothing).status, Status::Pass);
}

INSTANTIATE_TEST_SUITE_P(
    All, FaultInALaunch,
    testing::Values(Fault{"launch-crash", Status::Crash, "l1.launch.groups.2x1x1 crashed with"},
                    Fault{"launch-abort", Status::Crash, "crashed with SIGABRT"},
                    Fault{"launch-exit", Status::Crash, "ended the process with exit(3)"},
                    Fault{"launch-throw", Status::Fail, "thrown by a plugin"},
                    Fault{"launch-hang", Status::Timeout, "did not return within 2 s"},
                    Fault{"launch-print", Status::Crash, "it printed: printed by a plugin"}),
    [](const auto& tested) {
      std::string name = tested.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(Worker, ACrashAndAHangGiveTheStack) {
  for (const char* fault : {"launch-crash", "launch-hang"}) {
    const Report report = run_faulty(fault);
    EXPECT_THAT(result_of(report, kLaunches).stack, HasSubstr("libplugrad_plugin_faulty.so"));
  }
}

TEST(Worker, AWriteOutsideABufferIsFoundByItsGuardBytes) {
  const Report report = run_suite(faulty_options("before", "l1.access.gates.f32"));
  EXPECT_EQ(report.totals.fail, 1u);
  EXPECT_THAT(report.tests[0].message, HasSubstr("outside buffer"));
  EXPECT_THAT(report.tests[0].message, HasSubstr("at byte -1"));
}

TEST(Worker, APluginWithoutFaultsPasses) {
  const Report report = run_faulty("");
  EXPECT_EQ(report.totals.pass, 2u);
  EXPECT_EQ(report.device, "FAULTY: Kernel IR interpreter");
}

// A plugin that cannot be opened fails every test, and costs the time of two.
TEST(Worker, APluginThatDiesInItsEntryFailsEveryTest) {
  for (const char* fault : {"entry-crash", "entry-hang", "entry-throw"}) {
    Options options = faulty_options("", "l1.launch");
    options.plugin_options["fault"] = fault;
    options.time_limit_factor = 0.05;
    const auto start = std::chrono::steady_clock::now();
    const Report report = run_suite(options);
    EXPECT_GT(report.tests.size(), 10u);
    EXPECT_EQ(report.totals.pass, 0u) << fault;
    EXPECT_EQ(report.totals.unsupported, 0u) << fault;
    EXPECT_THAT(report.tests.back().message, HasSubstr("not run: the plugin cannot be opened"));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15)) << fault;
  }
}

TEST(Worker, ADeviceThatHangsInEveryLaunchIsGivenUp) {
  Options options = faulty_options("launch-hang", "l1.launch.groups");
  options.time_limit_factor = 0.02;
  const Report report = run_suite(options);
  EXPECT_EQ(report.totals.timeout, 5u);
  EXPECT_THAT(report.tests.back().message, HasSubstr("5 tests of L1 in a row timed out"));
  EXPECT_EQ(report.totals.pass, 0u);
}

TEST(RunSuite, RefusesWhatCannotBeRun) {
  Options options = faulty_options("", "l1.no_such_group");
  EXPECT_THROW(run_suite(options), std::runtime_error);
  options = faulty_options("", "l1");
  options.plugin_path = "/no/such/library.so";
  EXPECT_THROW(run_suite(options), std::runtime_error);
  options = faulty_options("", "l1");
  options.worker_path = "/no/such/worker";
  EXPECT_THROW(run_suite(options), std::runtime_error);
}

TEST(RunSuite, ALevelWithoutExecutedTestsIsNamed) {
  Report report;
  report.levels = {Level::L1, Level::L3};
  report.tests.resize(2);
  report.tests[0].level = Level::L1;
  report.tests[1].level = Level::L3;
  report.tests[1].status = Status::Unsupported;
  EXPECT_THAT(nothing_ran(report), HasSubstr("no test of L3 ran"));
  report.levels = {};
  EXPECT_EQ(nothing_ran(report), "");
  report.tests[0].status = Status::Unsupported;
  EXPECT_THAT(nothing_ran(report), HasSubstr("no test ran"));
}

}  // namespace
}  // namespace plugrad::conformance
