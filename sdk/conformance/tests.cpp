// All tests of the suite, ordered by level; within a level, exclusive tests come last.
#include <algorithm>
#include <stdexcept>

#include "conformance/test.h"

namespace plugrad::conformance {
namespace {

constexpr void (*kFamilies[])(Tests&) = {
    add_l0_tests,      add_memory_tests, add_error_tests, add_core_kernel_tests, add_alu_tests,
    add_cast_tests,    add_known_tests,  add_lane_tests,  add_shape_tests,       add_random_tests,
    add_compile_tests, add_async_tests,  add_perf_tests,  add_worker_tests,
};

// An id identifies one test in replay tokens, reports and waivers.
void refuse_repeated_ids(const Tests& tests) {
  std::vector<std::string_view> ids;
  for (const Test& test : tests) ids.push_back(test.id);
  std::sort(ids.begin(), ids.end());
  const auto repeated = std::adjacent_find(ids.begin(), ids.end());
  if (repeated != ids.end())
    throw std::logic_error("two tests of the suite are named " + std::string(*repeated));
}

Tests collect() {
  Tests tests;
  for (const auto add_family : kFamilies) add_family(tests);
  refuse_repeated_ids(tests);
  for (Test& test : tests)
    test.alone |= test.level == Level::L0 || test.level == Level::L3 || test.level == Level::Perf;
  std::stable_sort(tests.begin(), tests.end(), [](const Test& a, const Test& b) {
    return std::pair(a.level, a.alone) < std::pair(b.level, b.alone);
  });
  return tests;
}

}  // namespace

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

const Tests& all_tests() {
  static const Tests tests = collect();
  return tests;
}

std::vector<TestResult> list_tests(bool full) {
  std::vector<TestResult> list;
  for (const Test& test : all_tests()) {
    if ((!full && !test.quick) || test.on_demand) continue;
    TestResult entry;
    entry.id = test.id;
    entry.level = test.level;
    entry.op = test.op;
    entry.dtype = test.dtype;
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace plugrad::conformance
