// The report as JUnit XML: one test suite a level.
#include <fmt/format.h>

#include "conformance/report/report.h"

namespace plugrad::conformance {
namespace {

std::string attribute(std::string_view text) {
  std::string out;
  for (char c : escape_markup(text))
    out += c == '\n' ? "&#10;" : c == '\t' ? "&#9;" : std::string(1, c);
  return out;
}

std::string details(const Report& report, const TestResult& test) {
  std::string text = test.message + "\n";
  if (const std::string command = replay_command(report, test); !command.empty())
    text += "\nreplay: " + command + "\n";
  if (!test.ir.empty()) text += "\n" + test.ir + "\n";
  if (!test.stack.empty()) text += "\n" + test.stack + "\n";
  return escape_markup(text);
}

std::string outcome(const Report& report, const TestResult& test) {
  const std::string first_line = test.message.substr(0, test.message.find('\n'));
  switch (test.status) {
    case Status::Pass:
      if (test.metric.empty()) return {};
      return fmt::format(
          "      <system-out>{}</system-out>\n",
          escape_markup(fmt::format("worst {} at {}", describe_measure(test), test.worst_input)));
    case Status::Fail:
      return fmt::format("      <failure message=\"{}\" type=\"fail\">{}</failure>\n",
                         attribute(first_line), details(report, test));
    case Status::Crash:
    case Status::Timeout:
      return fmt::format("      <error message=\"{}\" type=\"{}\">{}</error>\n",
                         attribute(first_line), to_string(test.status), details(report, test));
    case Status::Unsupported:
    case Status::Waived:
      return fmt::format("      <skipped message=\"{}: {}\"/>\n", to_string(test.status),
                         attribute(first_line));
  }
  return {};
}

std::string suite_of(const Report& report, Level level) {
  std::string cases;
  uint64_t tests = 0, failures = 0, errors = 0, skipped = 0;
  double milliseconds = 0;
  for (const TestResult& test : report.tests) {
    if (test.level != level) continue;
    ++tests;
    failures += test.status == Status::Fail;
    errors += test.status == Status::Crash || test.status == Status::Timeout;
    skipped += test.status == Status::Unsupported || test.status == Status::Waived;
    milliseconds += test.milliseconds;
    const size_t dot = test.id.rfind('.');
    const std::string family = dot == test.id.npos ? "" : test.id.substr(0, dot);
    const std::string body = outcome(report, test);
    cases += fmt::format("    <testcase name=\"{}\" classname=\"{}\" time=\"{:.6f}\"",
                         attribute(test.id), attribute(family), test.milliseconds * 1e-3);
    cases += body.empty() ? "/>\n" : ">\n" + body + "    </testcase>\n";
  }
  if (tests == 0) return {};
  return fmt::format(
      "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" "
      "time=\"{:.6f}\">\n{}  </testsuite>\n",
      to_string(level), tests, failures, errors, skipped, milliseconds * 1e-3, cases);
}

}  // namespace

std::string write_junit(const Report& report) {
  const Totals& totals = report.totals;
  std::string xml = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"plugrad conformance of {}\" "
      "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
      attribute(report.device), report.tests.size(), totals.fail, totals.crash + totals.timeout,
      totals.unsupported + totals.waived);
  for (Level level : kLevels) xml += suite_of(report, level);
  return xml + "</testsuites>\n";
}

}  // namespace plugrad::conformance
