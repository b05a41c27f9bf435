// Derives the next steps from failed and unsupported tests.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "conformance/report/report.h"

namespace plugrad::conformance {
namespace {

// Prerequisites of later families, in order: a kernel that computes nothing also fails tests of L0
// that use a device and then inspect the process.
constexpr std::string_view kGround[] = {"l0.library", "l0.manifest",  "l0.hello",
                                        "l0.info",    "l0.interface", "l1.device",
                                        "l1.memory",  "l1.launch",    "l0"};

size_t rank_of(const TestResult& result) {
  const auto is_of = [&](std::string_view family) {
    return result.id.starts_with(family) && result.id[family.size()] == '.';
  };
  const size_t rank = static_cast<size_t>(std::ranges::find_if(kGround, is_of) - kGround);
  return rank < std::size(kGround) ? rank : rank + static_cast<size_t>(result.level);
}

// A test skipped before its start has no result of its own.
bool was_run(const TestResult& result) {
  return !result.message.starts_with("not run: ");
}

// The most likely root cause: within a level a hang, after which tests get less time or are
// skipped; otherwise the earliest prerequisite. The rest of L0 uses a device, as L1 does.
bool is_before(const TestResult& one, const TestResult& other) {
  const auto place = [](const TestResult& result) {
    const size_t rank = rank_of(result);
    const bool is_rest_of_l0 = rank == std::size(kGround) - 1;
    return std::tuple(!was_run(result), is_rest_of_l0 ? Level::L1 : result.level,
                      result.status != Status::Timeout, rank);
  };
  return place(one) < place(other);
}

void add_repair(std::span<const TestResult> results, std::vector<NextStep>& next) {
  const TestResult* first = nullptr;
  std::map<Level, uint64_t> failures;
  for (const TestResult& result : results) {
    if (!is_failure(result.status)) continue;
    ++failures[result.level];
    if (!first || is_before(result, *first)) first = &result;
  }
  if (!first) return;
  next.push_back(
      {first->level,
       fmt::format("mend {} first ({}; {} of {} in all): {}", first->id, to_string(first->status),
                   counted(failures[first->level], "failure"), to_string(first->level),
                   first->message.substr(0, first->message.find('\n')))});
}

// "pgr.allocator map" as a noun phrase.
std::string missing_function(const std::string& unlocked_by) {
  const size_t space = unlocked_by.find(' ');
  if (space == std::string::npos) return fmt::format("implement {}", unlocked_by);
  return fmt::format("implement {}() of {}", unlocked_by.substr(space + 1),
                     unlocked_by.substr(0, space));
}

// Storing, moving and converting a dtype are not arithmetic.
bool is_arithmetic(const std::string& op) {
  return !op.empty() && op != "cast" && op != "bitcast" && op != "where";
}

// A possible addition to the plugin: "claim sin" with its dtypes.
struct Addition {
  Level level = Level::Perf;  // the lowest level of the tests that it unlocks
  uint64_t unlocks = 0;
  std::set<std::string> dtypes;
};

constexpr std::string_view kLacks = "the device does not claim ";
constexpr std::string_view kOffersNot = "the plugin does not offer ";

// The addition and its dtype. A dtype with some ops lacks one op; a dtype without ops lacks all.
// The message states the missing part, e.g. a cast.
std::pair<std::string, std::string> addition_of(const TestResult& result, const Test& test,
                                                const std::set<std::string>& computing) {
  if (result.message.starts_with(kOffersNot)) {
    const std::string missing = result.message.substr(kOffersNot.size());
    if (missing == test.unlocked_by) return {missing_function(missing), ""};
    if (missing == test.claim) return {fmt::format("offer the interface {}", missing), ""};
  }
  if (!test.unlocked_by.empty() || !test.claim.empty()) return {};  // present, but not sufficient
  if (result.op.empty() || result.dtype.empty()) return {};
  if (is_arithmetic(result.op) && !computing.count(result.dtype))
    return {"claim arithmetic", result.dtype};
  if (!result.message.starts_with(kLacks)) return {"claim " + result.op, result.dtype};
  const std::string lacking = lower(std::string_view(result.message).substr(kLacks.size()));
  const size_t on = lacking.find(" on ");
  if (on == lacking.npos) return {"claim " + lacking, ""};
  return {"claim " + lacking.substr(0, on), lacking.substr(on + 4)};
}

std::string advice_text(const std::string& what, const Addition& addition) {
  std::string text = what;
  for (const std::string& dtype : addition.dtypes)
    text += (dtype == *addition.dtypes.begin() ? " on " : ", ") + dtype;
  return fmt::format("{} to unlock {}", text, counted(addition.unlocks, "test"));
}

std::map<std::string, Addition> additions(std::span<const TestResult> results, const Tests& tests) {
  std::map<std::string_view, const Test*> by_id;
  for (const Test& test : tests) by_id[test.id] = &test;
  std::set<std::string> computing;
  for (const TestResult& result : results)
    if (result.status != Status::Unsupported && is_arithmetic(result.op))
      computing.insert(result.dtype);
  std::map<std::string, Addition> all;
  for (const TestResult& result : results) {
    const auto test = by_id.find(result.id);
    if (result.status != Status::Unsupported || test == by_id.end()) continue;
    const auto [what, dtype] = addition_of(result, *test->second, computing);
    if (what.empty()) continue;
    Addition& addition = all[what];
    addition.level = std::min(addition.level, result.level);
    ++addition.unlocks;
    if (!dtype.empty()) addition.dtypes.insert(dtype);
  }
  return all;
}

}  // namespace

std::vector<NextStep> next_steps(std::span<const TestResult> results, const Tests& tests) {
  std::vector<NextStep> next;
  add_repair(results, next);
  const std::map<std::string, Addition> all = additions(results, tests);
  std::vector<std::pair<std::string, Addition>> sorted(all.begin(), all.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.unlocks > b.second.unlocks;
  });
  for (const auto& [what, addition] : sorted)
    next.push_back({addition.level, advice_text(what, addition)});
  return next;
}

}  // namespace plugrad::conformance
