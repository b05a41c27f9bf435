// Tests that the suite survives misbehaving plugins and reports their behaviour.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "conformance/suite_run.h"

namespace plugrad::conformance {
namespace {

using testing::HasSubstr;

// A test that launches a kernel, and a later one that does not.
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
    const std::string& stack = result_of(report, kLaunches).stack;
    EXPECT_THAT(stack, HasSubstr("libplugrad_plugin_faulty.so "));
    EXPECT_THAT(stack, HasSubstr("launch")) << "a function that is not exported has its name";
    EXPECT_THAT(write_text(report), HasSubstr("libplugrad_plugin_faulty.so "));
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

// Through printf, of which the dynamic linker shows no write().
TEST(Worker, OutputIsThePluginsAndNotItsDrivers) {
  EXPECT_EQ(run_suite(faulty_options("open-driver_says", "l0.process.silence")).totals.pass, 1u);
  const Report report = run_suite(faulty_options("open-say", "l0.process.silence"));
  EXPECT_EQ(report.tests[0].message, "the plugin printed: said by a plugin\n");
}

std::string refusal_of(const Options& options) {
  try {
    run_suite(options);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

// One error instead of a report full of failures.
TEST(Worker, APluginThatDiesInItsEntryEndsTheRun) {
  const std::pair<const char*, const char*> kFaults[] = {
      {"entry-crash", "crashed with"}, {"entry-hang", "did not return"}, {"entry-throw", "thrown"}};
  for (const auto& [fault, told] : kFaults) {
    Options options = faulty_options("", "l1.launch");
    options.plugin_options["fault"] = fault;
    options.time_limit_factor = 0.05;
    const std::string refusal = refusal_of(options);
    EXPECT_THAT(refusal, HasSubstr("the plugin cannot be opened"));
    EXPECT_THAT(refusal, HasSubstr(told));
  }
}

TEST(Worker, ADeviceOrOptionThatIsNotThereEndsTheRun) {
  Options options = faulty_options("", "l1.launch");
  options.device_index = 7;
  EXPECT_THAT(refusal_of(options), HasSubstr("device 7 of the plugin cannot be opened"));
  options = faulty_options("", "l1.launch");
  options.device_options["fault"] = "open-throw";
  EXPECT_THAT(refusal_of(options), HasSubstr("device 0 of the plugin cannot be opened"));
}

TEST(Worker, ADeviceThatHangsInEveryLaunchIsGivenUp) {
  for (const uint32_t jobs : {1, 3}) {
    Options options = faulty_options("launch-hang", "l1.launch.groups");
    options.time_limit_factor = 0.02;
    options.jobs = jobs;
    const Report report = run_suite(options);
    EXPECT_EQ(report.totals.timeout, 5u);
    EXPECT_THAT(report.tests.back().message, HasSubstr("5 tests of L1 in a row timed out"));
    EXPECT_EQ(report.totals.pass, 0u);
  }
}

TEST(Worker, BehindAHangTheTestsOfItsFamilyHaveLessTime) {
  Options options = faulty_options("launch-hang", "l1.launch.groups.*");
  options.time_limit_factor = 0.05;
  options.jobs = 1;
  const Report report = run_suite(options);
  EXPECT_THAT(report.tests[0].message, HasSubstr("within 1 s"));
  EXPECT_THAT(report.tests[1].message, HasSubstr("within 0.2 s, shortened"));
}

std::vector<std::string> facts_of(const Report& report) {
  std::vector<std::string> facts;
  for (const TestResult& test : report.tests)
    facts.push_back(test.id + " " + to_string(test.status) + " " + test.replay);
  return facts;
}

TEST(SideBySide, OrderAndResultsAreThoseOfOneWorker) {
  Options options = faulty_options("xor", "l1.memory,l1.ops,l2.alu.xor.*");
  options.jobs = 1;
  const Report one = run_suite(options);
  std::vector<size_t> places;
  options.progress = [&](const TestResult&, size_t done, size_t) { places.push_back(done); };
  options.jobs = 4;
  const Report four = run_suite(options);
  EXPECT_GT(one.totals.fail, 0u);
  EXPECT_EQ(facts_of(one), facts_of(four));
  ASSERT_EQ(places.size(), four.tests.size());
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
}

TEST(SideBySide, ACrashIsTheResultOfItsTestAlone) {
  Options options = faulty_options("launch-crash", "l1.launch.groups,l1.memory.size");
  options.jobs = 3;
  const Report report = run_suite(options);
  EXPECT_GT(report.totals.crash, 5u);
  for (const TestResult& test : report.tests)
    EXPECT_TRUE(test.id.starts_with("l1.launch") || test.status == Status::Pass) << test.id;
}

TEST(RunSuite, AnInterruptedRunReportsWhatRan) {
  for (const uint32_t jobs : {1, 2}) {
    Options options = faulty_options("", "l1.memory");
    options.jobs = jobs;
    std::atomic<size_t> seen = 0;
    options.progress = [&](const TestResult&, size_t, size_t) { ++seen; };
    options.interrupted = [&] { return seen >= 3; };
    const Report report = run_suite(options);
    EXPECT_TRUE(report.interrupted);
    EXPECT_GE(report.tests.size(), 3u);
    EXPECT_LT(report.tests.size(), 20u);
    EXPECT_EQ(report.totals.pass, report.tests.size());
    EXPECT_THAT(write_text(report), HasSubstr("the run was interrupted"));
    EXPECT_THAT(verify_report(write_json(report)), HasSubstr("interrupted"));
  }
}

TEST(RunSuite, AnInterruptionEndsATestThatHangs) {
  Options options = faulty_options("launch-hang", "l1.launch.groups.2x1x1");
  const auto start = std::chrono::steady_clock::now();
  options.interrupted = [&] {
    return std::chrono::steady_clock::now() - start > std::chrono::seconds(1);
  };
  const Report report = run_suite(options);
  EXPECT_TRUE(report.interrupted);
  EXPECT_TRUE(report.tests.empty());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
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
