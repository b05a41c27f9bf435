// Tests the progress output of `plugrad conformance` without a terminal.
#include "tools/conformance/progress.h"

#include <gtest/gtest.h>

namespace plugrad::tools {
namespace {

std::string logged(std::chrono::milliseconds interval) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* log = open_memstream(&text, &size);
  {
    Progress progress(true, log, interval);
    conformance::TestResult result;
    result.level = conformance::Level::L1;
    result.id = "l1.memory.copy";
    for (size_t done = 1; done <= 3; ++done) progress(result, done, 3);
  }
  std::fclose(log);
  const std::string out(text, size);
  std::free(text);
  return out;
}

TEST(Progress, IsLoggedEachInterval) {
  EXPECT_EQ(logged(std::chrono::milliseconds(0)),
            "L1 core         1 passed   0 failed   test 1 of 3: l1.memory.copy\n"
            "L1 core         2 passed   0 failed   test 2 of 3: l1.memory.copy\n");
  EXPECT_EQ(logged(std::chrono::hours(1)), "");
}

}  // namespace
}  // namespace plugrad::tools
