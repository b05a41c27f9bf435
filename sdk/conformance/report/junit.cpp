// The report as JUnit XML: one test suite a level.
#include <fmt/format.h>

#include "conformance/report/report.h"
#include "markup/clean_text.h"
#include "markup/fill.h"
#include "report_templates.h"

namespace plugrad::conformance {
namespace {

using markup::Values;

std::string attribute(std::string_view text) {
  std::string out;
  for (char c : markup::escape_markup(text))
    out += c == '\n' ? "&#10;" : c == '\t' ? "&#9;" : std::string(1, c);
  return out;
}

std::string details(const Report& report, const TestResult& test) {
  std::string text = test.message + "\n";
  if (const std::string command = replay_command(report, test); !command.empty())
    text += "\nreplay: " + command + "\n";
  if (!test.ir.empty()) text += "\n" + test.ir + "\n";
  if (!test.stack.empty()) text += "\n" + test.stack + "\n";
  return text;
}

Values outcome(const Report& report, const TestResult& test) {
  const std::string message = attribute(test.message.substr(0, test.message.find('\n')));
  const char* status = to_string(test.status);
  switch (test.status) {
    case Status::Pass:
      if (test.metric.empty()) return {};
      return {{"measure", fmt::format("worst {} at {}", describe_measure(test), test.worst_input)}};
    case Status::Fail:
      return {{"failure", {{"message", message}, {"details", details(report, test)}}}};
    case Status::Crash:
    case Status::Timeout:
      return {{"error",
               {{"message", message}, {"status", status}, {"details", details(report, test)}}}};
    case Status::Unsupported:
    case Status::Waived:
      return {{"skip", {{"message", message}, {"status", status}}}};
  }
  return {};
}

Values case_of(const Report& report, const TestResult& test) {
  const size_t dot = test.id.rfind('.');
  return {{"name", attribute(test.id)},
          {"family", attribute(dot == test.id.npos ? "" : test.id.substr(0, dot))},
          {"time", fmt::format("{:.6f}", test.milliseconds * 1e-3)},
          {"outcome", outcome(report, test)}};
}

// The attributes of all tests or of a level.
Values attributes(const Totals& totals, size_t tests) {
  return {{"tests", tests},
          {"failures", totals.fail},
          {"errors", totals.crash + totals.timeout},
          {"skipped", totals.unsupported + totals.waived}};
}

Values level_of(const Report& report, Level level) {
  Totals totals;
  Values cases = Values::array();
  double milliseconds = 0;
  for (const TestResult& test : report.tests) {
    if (test.level != level) continue;
    ++total_of(totals, test.status);
    milliseconds += test.milliseconds;
    cases.push_back(case_of(report, test));
  }
  if (cases.empty()) return {};
  Values suite = attributes(totals, cases.size());
  suite["level"] = to_string(level);
  suite["time"] = fmt::format("{:.6f}", milliseconds * 1e-3);
  suite["cases"] = std::move(cases);
  return suite;
}

}  // namespace

std::string write_junit(const Report& report) {
  Values values = attributes(report.totals, report.tests.size());
  values["device"] = attribute(report.device);
  values["levels"] = Values::array();
  for (Level level : kLevels)
    if (Values suite = level_of(report, level); !suite.is_null())
      values["levels"].push_back(std::move(suite));
  return markup::fill(templates::kReportXml, values);
}

}  // namespace plugrad::conformance
