// PoCL compiles a kernel once, for the workgroup size of the launch. Runs with POCL_CACHE_DIR,
// where PoCL leaves one library per compilation.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <vector>

#include "plugrad/tensor.h"
#include "runtime/registry.h"

namespace plugrad {
namespace {

size_t count_libraries(const std::filesystem::path& folder) {
  size_t count = 0;
  if (std::filesystem::exists(folder))
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      count += entry.path().extension() == ".so";
  return count;
}

TEST(OpenclCompileCount, KernelOfPocl_IsCompiledOnce) {
  const char* folder = std::getenv("POCL_CACHE_DIR");
  if (!folder) GTEST_SKIP() << "POCL_CACHE_DIR is not set";
  try {
    runtime::Registry::instance().find_device("OPENCL");
  } catch (const std::exception& failure) {
    GTEST_SKIP() << "no OPENCL device here: " << failure.what();
  }
  const size_t before = count_libraries(folder);
  // The kernel holds a number of this run alone, so that no cache has it.
  const float factor = 1 + static_cast<float>(std::random_device()() % 1'000'000) / 1'000'000;
  const Tensor x = Tensor::from(std::vector<float>{1, -2, 0.5f}, "OPENCL");
  EXPECT_EQ((x * factor).to_vector<float>(), (std::vector<float>{factor, -2 * factor, factor / 2}));
  const size_t compiled = count_libraries(folder) - before;
  if (compiled == 0) GTEST_SKIP() << "the OPENCL device here is not PoCL";
  EXPECT_EQ(compiled, 1u);
}

}  // namespace
}  // namespace plugrad
