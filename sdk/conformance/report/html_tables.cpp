// The tables of the page: perf, slow tests, unclaimed features, all tests.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "conformance/report/html.h"

namespace plugrad::conformance::html {
namespace {

constexpr size_t kSlowest = 15;

std::string family_of(const std::string& id) {
  const size_t first = id.find('.');
  if (first == id.npos) return id;
  return id.substr(0, id.find('.', first + 1));
}

std::string milliseconds(double value) {
  return fmt::format("{:.{}f} ms", value, value < 10 ? 2 : 0);
}

// Only the first line, to keep table rows short.
std::string first_line(const std::string& text) {
  return escape_markup(text.substr(0, text.find('\n')));
}

std::string test_row(const TestResult& test, size_t family_length) {
  std::string what = test.metric.empty() ? "" : describe_measure(test);
  if (!what.empty() && !test.worst_input.empty()) what += " at " + test.worst_input;
  const std::string name =
      test.id.size() > family_length ? test.id.substr(family_length + 1) : test.id;
  const bool quiet = test.status == Status::Pass || test.status == Status::Unsupported;
  return fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td class=number>{}</td></tr>\n",
                     badge(test.status), escape_markup(name),
                     quiet ? escape_markup(what) : first_line(test.message),
                     milliseconds(test.milliseconds));
}

}  // namespace

std::string performance(const Report& report) {
  std::string html;
  for (const TestResult& test : report.tests) {
    if (test.level != Level::Perf || test.metric.empty()) continue;
    html += fmt::format("<tr><td><code>{}</code></td><td class=number>{}</td><td>{}</td></tr>\n",
                        escape_markup(test.id), escape_markup(describe_measure(test)),
                        escape_markup(test.worst_input));
  }
  if (html.empty()) return {};
  return section(
      "perf", "Speed, reported and not judged",
      "<div class=scroll><table class=wide><thead><tr><th>test</th><th class=number>measured"
      "</th><th>how</th></tr></thead><tbody>" +
          html + "</tbody></table></div>");
}

std::string slowest(const Report& report) {
  std::vector<const TestResult*> tests;
  for (const TestResult& test : report.tests) tests.push_back(&test);
  const size_t shown = std::min(kSlowest, tests.size());
  std::ranges::partial_sort(tests, tests.begin() + static_cast<std::ptrdiff_t>(shown),
                            [](auto* a, auto* b) { return a->milliseconds > b->milliseconds; });
  std::string html;
  for (size_t i = 0; i < shown; ++i)
    html += fmt::format("<tr><td><code>{}</code></td><td class=number>{}</td></tr>\n",
                        escape_markup(tests[i]->id), milliseconds(tests[i]->milliseconds));
  return section("slow", "Slowest tests",
                 "<div class=scroll><table><thead><tr><th>test</th><th class=number>time</th></tr>"
                 "</thead><tbody>" +
                     html + "</tbody></table></div>");
}

std::string unsupported(const Report& report) {
  std::map<std::string, std::vector<const TestResult*>> groups;
  for (const TestResult& test : report.tests)
    if (test.status == Status::Unsupported) groups[test.message].push_back(&test);
  std::vector<const decltype(groups)::value_type*> sorted;
  for (const auto& group : groups) sorted.push_back(&group);
  std::ranges::stable_sort(sorted,
                           [](auto* a, auto* b) { return a->second.size() > b->second.size(); });
  std::string html;
  for (const auto* group : sorted) {
    html += fmt::format("<details><summary>{} <span class=soft>({})</span></summary><ul>",
                        first_line(group->first), counted(group->second.size(), "test"));
    for (const TestResult* test : group->second)
      html += fmt::format("<li><code>{}</code></li>", escape_markup(test->id));
    html += "</ul></details>\n";
  }
  return section("unsupported", "Not claimed, so not tested", html);
}

std::string all_tests(const Report& report) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const TestResult*>> families;
  for (const TestResult& test : report.tests) {
    const std::string family = family_of(test.id);
    if (!families.count(family)) order.push_back(family);
    families[family].push_back(&test);
  }
  std::string html =
      "<p><input id=search type=search placeholder=\"search ids and values\" "
      "aria-label=\"search tests\"></p>\n";
  for (const std::string& family : order) {
    Totals totals;
    std::string rows, counts;
    for (const TestResult* test : families[family]) {
      ++total_of(totals, test->status);
      rows += test_row(*test, family.size());
    }
    for (Status status : kStatuses)
      if (const uint64_t number = total_of(totals, status))
        counts += fmt::format("{}{} {}", counts.empty() ? "" : " · ", number, to_string(status));
    html += fmt::format(
        "<details><summary><code>{}</code> <span class=soft>{}</span></summary>"
        "<div class=scroll><table class=wide><tbody>\n{}</tbody></table></div></details>\n",
        escape_markup(family), counts, rows);
  }
  return section("all", "All tests", html);
}

}  // namespace plugrad::conformance::html
