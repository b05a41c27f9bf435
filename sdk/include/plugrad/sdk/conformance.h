// SPDX-License-Identifier: Apache-2.0
// The conformance suite: tests a plugin through plugin_api alone, in worker processes, and writes a
// report. docs/conformance.md lists the levels.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace plugrad::conformance {

enum class Level : uint8_t { L0, L1, L2, L3, Perf };
const char* to_string(Level level);  // "L0", …, "perf"

enum class Status : uint8_t { Pass, Fail, Unsupported, Waived, Crash, Timeout };
const char* to_string(Status status);  // "pass", …

struct TestResult {
  std::string id;  // "l2.alu.exp2.f32"; --filter matches on its parts
  Level level = Level::L0;
  Status status = Status::Pass;
  std::string message;      // reason of a failure; for Waived also the waiver's reason
  std::string metric;       // unit of `worst`: "ulp", "error/bound", "GB/s"; empty: none
  double worst = 0;         // the worst value measured
  std::string worst_input;  // the input that gave `worst`
  double milliseconds = 0;
  std::string replay;     // token for --replay, which reruns this test with the same inputs
  std::string ir;         // reduced kernel of a failure, as text
  std::string op, dtype;  // cell of the op x dtype matrix; empty: none
  std::string stack;      // stack trace of a crash
};

struct Totals {
  uint64_t pass = 0, fail = 0, unsupported = 0, waived = 0, crash = 0, timeout = 0;
};

// The recommended next action for the plugin's author, and its level.
struct NextStep {
  Level level = Level::L0;
  std::string text;  // "implement map() of pgr.allocator to unlock 8 tests"
};

struct Report {
  std::string device;  // "CPU: AMD EPYC …"
  std::string driver;  // as the device reports it
  std::string plugin_path, plugin_version, suite_version;
  std::string machine;
  std::string command;  // shell command that repeats this run
  uint64_t seed = 0;
  uint32_t jobs = 1;   // number of tests run in parallel
  double seconds = 0;  // wall time of the run
  Totals totals;
  std::vector<TestResult> tests;
  std::vector<NextStep> next;      // failures first, then the steps that unlock most tests
  std::vector<std::string> notes;  // e.g. an interrupted run, unused waivers

  // The requested selection: --verify-report derives the required tests from it.
  std::vector<Level> levels;  // empty: all; perf only if the filter names it
  bool full = false;
  std::string filter;
  std::string replay;
  bool interrupted = false;  // some tests did not run and are left out
};

// A test supplied by the caller of run_suite, which must isolate it. The suite keeps id, level, op
// and dtype of `described`; `run` returns the rest, must not throw, and may be called on any
// thread.
struct ExtraTest {
  TestResult described;
  bool quick = true;
  std::function<TestResult()> run;
};

struct Options {
  std::string plugin_path;  // the plugin's library; its manifest is beside it or embedded
  uint32_t device_index = 0;
  std::map<std::string, std::string> device_options;  // passed to device_open
  std::map<std::string, std::string> plugin_options;  // passed to the plugin's entry function
  std::vector<Level> levels;     // empty: all; perf only if the filter names it
  bool full = false;             // false: the quick selection
  std::string filter;            // glob over ids, "l1.memory.*"; empty: all
  uint64_t seed = 0;             // seed of all random inputs
  std::string replay;            // a token: runs only that test, with the same inputs
  std::string waivers_path;      // JSON; empty: none
  std::string worker_path;       // empty: next to this program
  double time_limit_factor = 1;  // for slow devices and sanitizers
  uint32_t jobs = 0;             // number of tests run in parallel; 0: one a core, up to a limit
  // run after the suite's own tests, with the same selection and waivers
  std::vector<ExtraTest> extra;
  // Called after each test, on the calling thread.
  std::function<void(const TestResult& result, size_t done, size_t total)> progress;
  // Polled on any thread; returning true ends the run, and completed tests are reported.
  std::function<bool()> interrupted;
};

// Runs the selected tests. A failure of the plugin is a result. Throws std::runtime_error if no
// test can run: missing library, a plugin, device or option that cannot be opened, an unknown
// filter, an invalid waivers file, no worker.
Report run_suite(const Options& options);

// The first selected level without an executed test, which makes the run fail; empty: none.
std::string nothing_ran(const Report& report);

// "1.0-1f3a5b7c": ABI version and digest of the set of tests.
const std::string& suite_version();

// Ids and levels of all tests of the suite.
std::vector<TestResult> list_tests(bool full);

// The report as text. docs/conformance.md specifies the JSON, which contains a digest of its
// content; the HTML is one self-contained page. Invalid UTF-8 is replaced.
std::string write_json(const Report& report, bool indented = true);
std::string write_junit(const Report& report);
std::string write_html(const Report& report);
// Summary for a terminal: failures, next steps, totals.
std::string write_text(const Report& report);

// Checks that this suite wrote the JSON report, unedited, complete and in the same version. Returns
// the reason of a failure; empty: valid. `extra` are the tests supplied by the caller of run_suite.
std::string verify_report(const std::string& json, const std::vector<ExtraTest>& extra = {});

}  // namespace plugrad::conformance
