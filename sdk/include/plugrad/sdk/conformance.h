// SPDX-License-Identifier: Apache-2.0
// The suite that judges a plugin through plugin_api alone: runs its tests in a worker process and
// reports. What the levels hold is in docs/conformance.md.
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
  std::string id;  // "l2.alu.exp2.f32"; its parts are the groups that --filter takes
  Level level = Level::L0;
  Status status = Status::Pass;
  std::string message;      // why it did not pass; for Waived the waiver's reason as well
  std::string metric;       // what `worst` counts: "ulp", "error/bound", "GB/s"; empty: none
  double worst = 0;         // the worst value measured
  std::string worst_input;  // where it was measured
  double milliseconds = 0;
  std::string replay;     // a token for --replay: runs exactly this again
  std::string ir;         // the kernel of a failure, as small as it was made, in text
  std::string op, dtype;  // cell of the op x dtype matrix; empty: none
  std::string stack;      // of a crash
};

struct Totals {
  uint64_t pass = 0, fail = 0, unsupported = 0, waived = 0, crash = 0, timeout = 0;
};

// What the author would do next, and the level that it is about.
struct NextStep {
  Level level = Level::L0;
  std::string text;  // "implement map() of pgr.allocator to unlock 8 tests"
};

struct Report {
  std::string device;  // "CPU: AMD EPYC …"
  std::string driver;  // as the device names it
  std::string plugin_path, plugin_version, suite_version;
  std::string machine;
  std::string command;  // that judges the same device again, as a shell takes it
  uint64_t seed = 0;
  uint32_t jobs = 1;   // tests that ran side by side
  double seconds = 0;  // that the run took
  Totals totals;
  std::vector<TestResult> tests;
  std::vector<NextStep> next;      // repairs first, then what unlocks most tests
  std::vector<std::string> notes;  // that the run was interrupted; waivers that nothing needed

  // What was asked for: --verify-report recomputes from it which tests must be there.
  std::vector<Level> levels;  // empty: all, perf only where the filter names it
  bool full = false;
  std::string filter;
  std::string replay;
  bool interrupted = false;  // before all of them ran: those that did not are left out
};

// A test that the caller of run_suite brings: it isolates it itself. Id, level, op and dtype of
// `described` are kept; `run` gives the rest, throws nothing, and may be called on any thread.
struct ExtraTest {
  TestResult described;
  bool quick = true;
  std::function<TestResult()> run;
};

struct Options {
  std::string plugin_path;  // the library; its manifest beside it or inside
  uint32_t device_index = 0;
  std::map<std::string, std::string> device_options;  // given to device_open
  std::map<std::string, std::string> plugin_options;  // given to the entry
  std::vector<Level> levels;     // empty: all, perf only where the filter names it
  bool full = false;             // else the quick selection
  std::string filter;            // glob over ids, "l1.memory.*"; empty: all
  uint64_t seed = 0;             // of everything random
  std::string replay;            // a token: runs that one test, as it was
  std::string waivers_path;      // JSON; empty: none
  std::string worker_path;       // empty: beside this program
  double time_limit_factor = 1;  // for slow devices and sanitizers
  uint32_t jobs = 0;             // tests that run side by side; 0: one a core, a few at most
  std::vector<ExtraTest> extra;  // run behind the suite's, selected and waived alike
  // Called after each test, on the calling thread.
  std::function<void(const TestResult& result, size_t done, size_t total)> progress;
  // Asked now and then, on any thread: true ends the run; what ran is reported.
  std::function<bool()> interrupted;
};

// Runs the selected tests. A failure of the plugin is a result; throws std::runtime_error where
// there is nothing to run: no such file, a plugin, device or option that cannot be opened, an
// unknown filter, a bad waivers file, no worker.
Report run_suite(const Options& options);

// Which selected level executed no test, which is a failure of the run as well; empty: none.
std::string nothing_ran(const Report& report);

// "1.0-1f3a5b7c": of the ABI, and of the set of tests.
const std::string& suite_version();

// Ids of all tests of the suite, with their levels.
std::vector<TestResult> list_tests(bool full);

// The report as text. JSON has the shape that docs/conformance.md gives and a digest of its own
// content; HTML is one page that needs no other file. Bytes that are no UTF-8 are replaced.
std::string write_json(const Report& report, bool indented = true);
std::string write_junit(const Report& report);
std::string write_html(const Report& report);
// For a terminal: failures, advice, totals.
std::string write_text(const Report& report);

// Why the text of a JSON report is not one that this suite wrote: edited, incomplete, of another
// version. Empty: it is. `extra` are tests that the caller of run_suite brought.
std::string verify_report(const std::string& json, const std::vector<ExtraTest>& extra = {});

}  // namespace plugrad::conformance
