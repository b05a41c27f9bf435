// The top of the page: verdict, totals per level, advice, failures, waivers.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/report/html.h"

namespace plugrad::conformance::html {
namespace {

// The highest level below the first failure; null if there is none.
const char* reached_level(const Report& report) {
  uint64_t failures = 0;
  const char* reached = nullptr;
  for (Level level : kLevels) {
    if (level == Level::Perf) continue;
    uint64_t passed = 0;
    for (const TestResult& test : report.tests) {
      if (test.level != level) continue;
      failures += is_failure(test.status);
      passed += test.status == Status::Pass;
    }
    if (failures == 0 && passed > 0) reached = to_string(level);
  }
  return reached;
}

std::string selection(const Report& report) {
  std::string text = report.full ? "full" : "quick";
  for (Level level : report.levels) text += fmt::format(", {}", to_string(level));
  if (!report.filter.empty()) text += ", " + report.filter;
  return report.replay.empty() ? text : "replay of " + report.replay;
}

Values level_row(Level level, Totals totals, size_t tests) {
  Values statuses = Values::array();
  for (Status status : kStatuses)
    if (const uint64_t number = total_of(totals, status))
      statuses.push_back({{"status", to_string(status)}, {"count", number}});
  return {{"level", to_string(level)},
          {"statuses", statuses},
          {"counts", counts(totals)},
          {"tests", counted(tests, "test")}};
}

Values failure(const Report& report, const TestResult& test) {
  return {{"id", test.id},
          {"status", to_string(test.status)},
          {"message", test.message},
          {"measure", describe_measure(test)},
          {"input", test.worst_input.empty() ? "" : "at " + test.worst_input},
          {"ir", test.ir},
          {"stack", test.stack},
          {"command", replay_command(report, test)}};
}

}  // namespace

Values part(const char* name, Values rows) {
  return rows.empty() ? Values() : Values{{name, std::move(rows)}};
}

std::string counts(Totals totals) {
  std::string text;
  for (Status status : kStatuses)
    if (const uint64_t number = total_of(totals, status))
      text += fmt::format("{}{} {}", text.empty() ? "" : " · ", number, to_string(status));
  return text;
}

Verdict verdict(const Report& report) {
  const Totals& totals = report.totals;
  const char* reached = reached_level(report);
  if (const uint64_t all = totals.fail + totals.crash + totals.timeout)
    return {Status::Fail,
            counted(all, "failure") +
                (reached ? fmt::format("; everything up to {} passes", reached) : "")};
  if (report.interrupted) return {Status::Fail, "interrupted: no verdict"};
  if (totals.pass == 0) return {Status::Fail, "no test passed"};
  return {Status::Pass, fmt::format("all {} passed", counted(totals.pass, "test")) +
                            (totals.waived ? fmt::format(", {} waived", totals.waived) : "")};
}

Values facts(const Report& report) {
  double milliseconds = 0;
  for (const TestResult& test : report.tests) milliseconds += test.milliseconds;
  const std::pair<const char*, std::string> known[] = {
      {"driver", report.driver},
      {"machine", report.machine},
      {"plugin", fmt::format("{} {}", file_name(report.plugin_path), report.plugin_version)},
      {"suite", report.suite_version},
      {"selection", selection(report)},
      {"seed", fmt::to_string(report.seed)},
      {"time", fmt::format("{:.1f} s, {:.1f} s in tests, {} at a time", report.seconds,
                           milliseconds * 1e-3, report.jobs)}};
  Values facts = Values::array();
  for (const auto& [name, value] : known)
    if (!value.empty()) facts.push_back({{"name", name}, {"value", value}});
  return facts;
}

Values levels(const Report& report) {
  Values rows = Values::array();
  for (Level level : kLevels) {
    std::vector<TestResult> tests;
    for (const TestResult& test : report.tests)
      if (test.level == level) tests.push_back(test);
    if (!tests.empty()) rows.push_back(level_row(level, count(tests), tests.size()));
  }
  return rows;
}

Values next_steps(const Report& report) {
  Values steps = Values::array();
  for (const NextStep& step : report.next) steps.push_back(step.text);
  return part("steps", std::move(steps));
}

Values failures(const Report& report) {
  Values tests = Values::array();
  for (const TestResult& test : report.tests)
    if (is_failure(test.status)) tests.push_back(failure(report, test));
  return part("tests", std::move(tests));
}

Values waived(const Report& report) {
  Values tests = Values::array();
  for (const TestResult& test : report.tests)
    if (test.status == Status::Waived)
      tests.push_back({{"id", test.id}, {"message", test.message}});
  if (tests.empty() && report.notes.empty()) return {};
  return {{"table", part("tests", std::move(tests))}, {"notes", report.notes}};
}

}  // namespace plugrad::conformance::html
