// Runs a program once for each of its allocations, which fails.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/settings.h"
#include "engine/session.h"
#include "plugrad/error.h"
#include "unit/base/failing_new.h"

namespace plugrad {

using Floats = std::vector<float>;

inline constexpr uint64_t kPoints = 60;  // of a test, unless all allocations are asked for

class FailedAllocations : public testing::Test {
 protected:
  // Kernels are planned and made anew each time, on this thread.
  SettingScope scope{[](Settings& s) {
    s.device = "REFERENCE";
    s.cache_dir = "/dev/null/none";
    s.threads = 1;
    s.tune = false;
  }};
};

// The number of allocations of work().
inline uint64_t count_of(const std::function<void()>& work) {
  engine::Session::current().clear_caches();
  const test::FailingNew counting;
  work();
  return test::FailingNew::count();
}

// Whether work() threw when its allocation `at` failed. Any other end than that error would be one
// of the test.
inline bool fails_at(uint64_t at, const std::function<void()>& work) {
  try {
    const test::FailingNew failing(at);
    work();
  } catch (const std::bad_alloc&) {
    return true;
  } catch (const Error&) {  // of a plugin, or of a value that is gone
    return true;
  }
  return false;
}

// Calls at(n) for allocations up to `count`: all of them, or some that lie evenly.
inline void for_each_allocation(uint64_t count, const std::function<void(uint64_t)>& at) {
  const char* const asked = std::getenv("PLUGRAD_TEST_ALLOCATIONS");
  const bool all = asked != nullptr && std::string(asked) == "all";
  ASSERT_GT(count, 0u);
  const uint64_t stride = all ? 1 : std::max<uint64_t>(count / kPoints, 1);
  for (uint64_t n = 1; n <= count; n += stride) {
    at(n);
    if (!testing::Test::HasFailure()) continue;
    ADD_FAILURE() << "with allocation " << n << " of " << count << " failing";
    return;
  }
}

inline Floats ramp(int64_t count, float scale) {
  Floats values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(scale * static_cast<float>((i * 37 + 11) % 101 - 50));
  return values;
}

}  // namespace plugrad
