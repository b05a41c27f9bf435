// Writes the report for a terminal.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/report/report.h"
#include "markup/clean_text.h"

namespace plugrad::conformance {
namespace {

using markup::clean_text;

constexpr size_t kMostFailures = 20, kMostAdvice = 8, kMostFrames = 12;

std::string indented(const std::string& text) {
  std::string out = "    ";
  for (char c : text) out += c == '\n' ? std::string("\n    ") : std::string(1, c);
  return out + "\n";
}

// The innermost frames.
std::string head_of(const std::string& stack) {
  size_t end = 0;
  for (size_t frames = 0; frames < kMostFrames && end < stack.size(); ++frames)
    end = std::min(stack.find('\n', end), stack.size() - 1) + 1;
  std::string head = stack.substr(0, end);
  if (!head.empty() && head.back() == '\n') head.pop_back();
  return end < stack.size() ? head + "\n…" : head;
}

std::string failure_text(const Report& report, const TestResult& test) {
  std::string text =
      fmt::format("{} {}\n{}", to_string(test.status), test.id, indented(test.message));
  if (!test.stack.empty()) text += indented(head_of(test.stack));
  if (!test.ir.empty()) text += indented(test.ir);
  if (const std::string command = replay_command(report, test); !command.empty())
    text += indented(command);
  return text;
}

}  // namespace

std::string write_text(const Report& report) {
  std::string text;
  size_t shown = 0, failures = 0;
  for (const TestResult& test : report.tests) {
    if (!is_failure(test.status)) continue;
    if (++failures <= kMostFailures) text += failure_text(report, test), ++shown;
  }
  if (shown < failures)
    text += fmt::format("… and {}; the reports hold all\n", counted(failures - shown, "failure"));
  for (const std::string& note : report.notes) text += note + "\n";
  if (!report.next.empty()) text += "next:\n";
  for (size_t i = 0; i < report.next.size() && i < kMostAdvice; ++i)
    text += fmt::format("  {}. {}\n", i + 1, report.next[i].text);
  const Totals& t = report.totals;
  return clean_text(text) +
         clean_text(fmt::format(
             "{}: {} passed, {} failed, {} crashed, {} timed out, {} waived, {} unsupported\n",
             report.device, t.pass, t.fail, t.crash, t.timeout, t.waived, t.unsupported));
}

}  // namespace plugrad::conformance
