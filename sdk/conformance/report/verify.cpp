// Verifies that the suite wrote a report.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "conformance/report/report.h"
#include "conformance/selection.h"

namespace plugrad::conformance {
namespace {

struct KnownTest {
  TestResult described;
  bool quick = true;
  bool on_demand = false;
};
using Known = std::map<std::string, KnownTest>;

[[noreturn]] void refuse_report(std::string why) {
  throw std::runtime_error(std::move(why));
}

Known known_tests(const std::vector<ExtraTest>& extra) {
  Known known;
  for (const Test& test : all_tests()) {
    KnownTest& each = known[test.id];
    each.described.level = test.level;
    each.described.op = test.op;
    each.described.dtype = test.dtype;
    each.quick = test.quick || test.on_demand;
    each.on_demand = test.on_demand;
  }
  for (const ExtraTest& test : extra)
    known[test.described.id] = {test.described, test.quick, false};
  return known;
}

void check_version(const Report& report) {
  if (report.suite_version != suite_version())
    refuse_report(
        fmt::format("it is by version {} of the suite, this is {}: verify it with that version",
                    report.suite_version, suite_version()));
}

void check_totals(const Report& report) {
  Totals said = report.totals, counts = count(report.tests);
  for (Status status : kStatuses)
    if (total_of(said, status) != total_of(counts, status))
      refuse_report(fmt::format("the totals say {} {}, the tests are {}", total_of(said, status),
                                to_string(status), total_of(counts, status)));
}

// Required fields of each status.
void check_result(const TestResult& test) {
  const bool passed = test.status == Status::Pass;
  if (!passed && test.message.empty())
    refuse_report(fmt::format("{} is \"{}\" without a message", test.id, to_string(test.status)));
  if (is_failure(test.status) && test.replay.empty())
    refuse_report(fmt::format("{} failed and has no replay token", test.id));
  if (test.status == Status::Waived && !test.message.starts_with("waived until "))
    refuse_report(fmt::format("{} is waived without a waiver's reason", test.id));
  if (passed && (!test.ir.empty() || !test.stack.empty()))
    refuse_report(fmt::format("{} passed and carries the kernel or stack of a failure", test.id));
}

void check_identity(const TestResult& test, const Known& known) {
  const auto found = known.find(test.id);
  if (found == known.end())
    refuse_report(fmt::format("{} is no test of this version of the suite", test.id));
  const TestResult& described = found->second.described;
  if (test.level != described.level || test.op != described.op || test.dtype != described.dtype)
    refuse_report(fmt::format("{} belongs to {} and not to {}, or to another op or dtype", test.id,
                              to_string(described.level), to_string(test.level)));
}

// The report has exactly the tests of the selection.
void check_complete(const Report& report, const Known& known) {
  std::map<std::string_view, const TestResult*> present;
  for (const TestResult& test : report.tests)
    if (!present.emplace(test.id, &test).second)
      refuse_report(fmt::format("{} stands twice", test.id));
  if (!report.replay.empty()) {
    if (report.tests.size() != 1) refuse_report("a replay holds one test");
    return;
  }
  for (const auto& [id, test] : known) {
    const bool wanted =
        (report.full || test.quick) &&
        selects(report.levels, report.filter, report.full, test.described.level, id);
    if (wanted && !test.on_demand && !present.count(id))
      refuse_report(fmt::format("{} was selected and is missing", id));
    if (!wanted && present.count(id))
      refuse_report(fmt::format("{} is there and was not selected", id));
  }
}

}  // namespace

std::string verify_report(const std::string& json, const std::vector<ExtraTest>& extra) {
  try {
    const ReadReport read = read_report(json);
    if (read.digest != read.expected_digest)
      refuse_report(
          fmt::format("it was changed after the suite wrote it: its digest is {}, its content's {}",
                      read.digest, read.expected_digest));
    check_version(read.report);
    if (read.report.interrupted) refuse_report("it is of a run that was interrupted");
    check_totals(read.report);
    const Known known = known_tests(extra);
    for (const TestResult& test : read.report.tests) {
      check_identity(test, known);
      check_result(test);
    }
    check_complete(read.report, known);
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace plugrad::conformance
