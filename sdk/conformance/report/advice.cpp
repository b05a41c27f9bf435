// What to do next, from what failed and what was left out.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "conformance/report/report.h"

namespace plugrad::conformance {
namespace {

// Failures of the lower levels make what is above them meaningless: they come first.
void add_repairs(std::span<const TestResult> results, std::vector<std::string>& next) {
  for (Level level : {Level::L0, Level::L1}) {
    uint64_t failures = 0;
    const TestResult* first = nullptr;
    for (const TestResult& result : results) {
      if (result.level != level || !is_failure(result.status)) continue;
      if (++failures == 1) first = &result;
    }
    if (!first) continue;
    const std::string message = first->message.substr(0, first->message.find('\n'));
    next.push_back(fmt::format("mend {} first ({}; {} of {} in all): {}", first->id,
                               to_string(first->status), counted(failures, "failure"),
                               to_string(level), message));
    return;
  }
}

// "pgr.allocator map" as a sentence's object.
std::string missing_function(const std::string& unlocked_by) {
  const size_t space = unlocked_by.find(' ');
  if (space == std::string::npos) return fmt::format("implement {}", unlocked_by);
  return fmt::format("implement {}() of {}", unlocked_by.substr(space + 1),
                     unlocked_by.substr(0, space));
}

// Storing, moving and converting a dtype is not computing with it.
bool is_arithmetic(const std::string& op) {
  return !op.empty() && op != "cast" && op != "bitcast" && op != "where";
}

// A dtype that computes already lacks an op; another one lacks them all.
std::string claim_of(const TestResult& result, const Test& test,
                     const std::set<std::string>& computing) {
  if (!test.unlocked_by.empty()) return missing_function(test.unlocked_by);
  if (!test.claim.empty()) return fmt::format("offer the interface {}", test.claim);
  if (result.op.empty() || result.dtype.empty()) return {};
  return computing.count(result.dtype) ? fmt::format("claim {}", result.op)
                                       : fmt::format("claim arithmetic on {}", result.dtype);
}

}  // namespace

std::vector<std::string> next_steps(std::span<const TestResult> results, const Tests& tests) {
  std::vector<std::string> next;
  add_repairs(results, next);
  std::map<std::string_view, const Test*> by_id;
  for (const Test& test : tests) by_id[test.id] = &test;
  std::set<std::string> computing;
  for (const TestResult& result : results)
    if (result.status != Status::Unsupported && is_arithmetic(result.op))
      computing.insert(result.dtype);
  std::map<std::string, uint64_t> unlocks;
  for (const TestResult& result : results) {
    const auto test = by_id.find(result.id);
    if (result.status != Status::Unsupported || test == by_id.end()) continue;
    if (const std::string claim = claim_of(result, *test->second, computing); !claim.empty())
      ++unlocks[claim];
  }
  std::vector<std::pair<std::string, uint64_t>> sorted(unlocks.begin(), unlocks.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [claim, count] : sorted)
    next.push_back(fmt::format("{} to unlock {}", claim, counted(count, "test")));
  return next;
}

}  // namespace plugrad::conformance
