// Runs the tests in every rank. Only rank 0 lists them; the others report their failures.
#include <gtest/gtest.h>

#include <cstdio>

#include "plugrad/distributed.h"
#include "plugrad/error.h"

namespace {

class FailuresOnly : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed())
      std::fprintf(stderr, "rank %d: %s:%d: %s\n", plugrad::distributed::rank(), result.file_name(),
                   result.line_number(), result.message());
  }
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  try {
    plugrad::distributed::init();
  } catch (const plugrad::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if (plugrad::distributed::rank() != 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOnly);
  }
  return RUN_ALL_TESTS();
}
