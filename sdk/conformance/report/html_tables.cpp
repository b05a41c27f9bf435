// The tables of the page: perf, slow tests, unclaimed features, all tests.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "conformance/report/html.h"

namespace plugrad::conformance::html {
namespace {

constexpr size_t kSlowest = 15;

std::string milliseconds(double value) {
  return fmt::format("{:.{}f} ms", value, value < 10 ? 2 : 0);
}

// Only the first line, to keep table rows short.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

Values row_of_test(const TestResult& test, size_t family_length) {
  std::string what = describe_measure(test);
  if (!what.empty() && !test.worst_input.empty()) what += " at " + test.worst_input;
  const bool quiet = test.status == Status::Pass || test.status == Status::Unsupported;
  return {{"status", to_string(test.status)},
          {"name", test.id.size() > family_length ? test.id.substr(family_length + 1) : test.id},
          {"what", quiet ? what : first_line(test.message)},
          {"time", milliseconds(test.milliseconds)}};
}

}  // namespace

Values performance(const Report& report) {
  Values tests = Values::array();
  for (const TestResult& test : report.tests) {
    if (test.level != Level::Perf || test.metric.empty()) continue;
    tests.push_back(
        {{"id", test.id}, {"measure", describe_measure(test)}, {"how", test.worst_input}});
  }
  return part("tests", std::move(tests));
}

Values slowest(const Report& report) {
  std::vector<const TestResult*> tests;
  for (const TestResult& test : report.tests) tests.push_back(&test);
  const size_t shown = std::min(kSlowest, tests.size());
  std::ranges::partial_sort(tests, tests.begin() + static_cast<std::ptrdiff_t>(shown),
                            [](auto* a, auto* b) { return a->milliseconds > b->milliseconds; });
  tests.resize(shown);
  Values rows = Values::array();
  for (const TestResult* test : tests)
    rows.push_back({{"id", test->id}, {"time", milliseconds(test->milliseconds)}});
  return rows;
}

Values unsupported(const Report& report) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const TestResult& test : report.tests)
    if (test.status == Status::Unsupported) groups[test.message].push_back(test.id);
  std::vector<const decltype(groups)::value_type*> sorted;
  for (const auto& group : groups) sorted.push_back(&group);
  std::ranges::stable_sort(sorted,
                           [](auto* a, auto* b) { return a->second.size() > b->second.size(); });
  Values reasons = Values::array();
  for (const auto* group : sorted)
    reasons.push_back({{"reason", first_line(group->first)},
                       {"count", counted(group->second.size(), "test")},
                       {"tests", group->second}});
  return part("reasons", std::move(reasons));
}

Values families(const Report& report) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const TestResult*>> families;
  for (const TestResult& test : report.tests) {
    const std::string family = family_of(test.id);
    if (!families.count(family)) order.push_back(family);
    families[family].push_back(&test);
  }
  Values rows = Values::array();
  for (const std::string& family : order) {
    Totals totals;
    Values tests = Values::array();
    for (const TestResult* test : families[family]) {
      ++total_of(totals, test->status);
      tests.push_back(row_of_test(*test, family.size()));
    }
    rows.push_back({{"family", family}, {"counts", counts(totals)}, {"tests", std::move(tests)}});
  }
  return rows;
}

}  // namespace plugrad::conformance::html
