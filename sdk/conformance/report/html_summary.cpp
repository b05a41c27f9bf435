// The top of the page: verdict, totals per level, advice, failures, waivers.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/report/html.h"

namespace plugrad::conformance::html {
namespace {

// The highest level below the first failure.
std::string verdict(const Report& report) {
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
  const Totals& totals = report.totals;
  const uint64_t all = totals.fail + totals.crash + totals.timeout;
  if (all > 0)
    return fmt::format("<p class=\"verdict fail\">{}{}</p>", counted(all, "failure"),
                       reached ? fmt::format("; everything up to {} passes", reached) : "");
  if (report.interrupted) return "<p class=\"verdict fail\">interrupted: no verdict</p>";
  if (totals.pass == 0) return "<p class=\"verdict fail\">no test passed</p>";
  return fmt::format("<p class=\"verdict pass\">all {} passed{}</p>", counted(totals.pass, "test"),
                     totals.waived ? fmt::format(", {} waived", totals.waived) : "");
}

void add_fact(std::string& html, const char* name, const std::string& value) {
  if (!value.empty()) html += fmt::format("<dt>{}</dt><dd>{}</dd>", name, escape_markup(value));
}

std::string selection(const Report& report) {
  std::string text = report.full ? "full" : "quick";
  for (Level level : report.levels) text += fmt::format(", {}", to_string(level));
  if (!report.filter.empty()) text += ", " + report.filter;
  return report.replay.empty() ? text : "replay of " + report.replay;
}

std::string facts(const Report& report) {
  double milliseconds = 0;
  for (const TestResult& test : report.tests) milliseconds += test.milliseconds;
  std::string html = "<dl class=facts>";
  add_fact(html, "driver", report.driver);
  add_fact(html, "machine", report.machine);
  add_fact(html, "plugin",
           fmt::format("{} {}", file_name(report.plugin_path), report.plugin_version));
  add_fact(html, "suite", report.suite_version);
  add_fact(html, "selection", selection(report));
  add_fact(html, "seed", fmt::to_string(report.seed));
  add_fact(html, "time",
           fmt::format("{:.1f} s, {:.1f} s in tests, {} at a time", report.seconds,
                       milliseconds * 1e-3, report.jobs));
  return html + "</dl>";
}

std::string level_row(Level level, Totals totals, size_t tests) {
  std::string bar, counts;
  for (Status status : kStatuses) {
    const uint64_t number = total_of(totals, status);
    if (number == 0) continue;
    bar += fmt::format("<i class={0} style=\"flex:{1}\" title=\"{1} {0}\"></i>", to_string(status),
                       number);
    counts += fmt::format("{}{} {}", counts.empty() ? "" : " · ", number, to_string(status));
  }
  return fmt::format(
      "<div class=level><b>{}</b><div class=bar role=img aria-label=\"{}\">{}</div>"
      "<div class=counts>{} of {}</div></div>\n",
      to_string(level), counts, bar, counts, counted(tests, "test"));
}

std::string card(const Report& report, const TestResult& test) {
  std::string html = fmt::format(
      "<article class=\"card {}\" id=\"{}\"><h3>{} <code>{}</code></h3><pre class=message>{}</pre>",
      to_string(test.status), escape_markup(test.id), badge(test.status), escape_markup(test.id),
      escape_markup(test.message));
  if (!test.metric.empty())
    html += fmt::format("<p>worst: {} {}</p>", escape_markup(describe_measure(test)),
                        test.worst_input.empty() ? "" : "at " + escape_markup(test.worst_input));
  if (!test.ir.empty())
    html += fmt::format(
        "<details open><summary>the kernel, as small as it was made</summary>"
        "<pre>{}</pre></details>",
        escape_markup(test.ir));
  if (!test.stack.empty())
    html += fmt::format("<details open><summary>the stack</summary><pre>{}</pre></details>",
                        escape_markup(test.stack));
  if (const std::string command = replay_command(report, test); !command.empty())
    html += fmt::format("<div class=command><pre>{}</pre><button data-copy>copy</button></div>",
                        escape_markup(command));
  return html + "</article>\n";
}

}  // namespace

std::string badge(Status status) {
  return fmt::format("<span class=\"badge {0}\">{0}</span>", to_string(status));
}

std::string section(std::string_view id, std::string_view title, const std::string& body) {
  if (body.empty()) return {};
  return fmt::format("<section id={}><h2>{}</h2>{}</section>\n", id, title, body);
}

std::string summary(const Report& report) {
  std::string html = fmt::format(
      "<header><p class=kind>plugrad conformance</p><h1>{}</h1>{}{}</header><div class=levels>\n",
      escape_markup(report.device), verdict(report), facts(report));
  for (Level level : kLevels) {
    std::vector<TestResult> tests;
    for (const TestResult& test : report.tests)
      if (test.level == level) tests.push_back(test);
    if (!tests.empty()) html += level_row(level, count(tests), tests.size());
  }
  return html + "</div>\n";
}

std::string next_steps(const Report& report) {
  std::string html;
  for (const NextStep& step : report.next)
    html += fmt::format("<li>{}</li>", escape_markup(step.text));
  return section("next", "What to do next", html.empty() ? html : "<ol>" + html + "</ol>");
}

std::string failures(const Report& report) {
  std::string html;
  for (const TestResult& test : report.tests)
    if (is_failure(test.status)) html += card(report, test);
  return section("failures", "Failures", html);
}

std::string waived(const Report& report) {
  std::string html;
  for (const TestResult& test : report.tests)
    if (test.status == Status::Waived)
      html += fmt::format("<tr><td><code>{}</code></td><td>{}</td></tr>\n", escape_markup(test.id),
                          escape_markup(test.message));
  if (!html.empty())
    html =
        "<div class=scroll><table class=wide><thead><tr><th>test</th><th>until when, why, and what "
        "failed</th></tr></thead><tbody>" +
        html + "</tbody></table></div>";
  for (const std::string& note : report.notes)
    html += fmt::format("<p>{}</p>", escape_markup(note));
  return section("waived", "Notes and waivers", html);
}

}  // namespace plugrad::conformance::html
