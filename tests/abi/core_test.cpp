// Opens plugins built with the frozen headers, with those of the next minor, and released binaries
// in the current host, and computes tensors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "errors/fresh_process.h"
#include "plugrad/device.h"
#include "plugrad/tensor.h"

namespace plugrad {
namespace {

using Floats = std::vector<float>;

void compute(const std::string& library) {
  add_plugin(library);
  Tensor a = Tensor::from<float>({1, 2, 3}), b = Tensor::from<float>({4, 5, 6});
  if ((a + b).to_vector<float>() != Floats{5, 7, 9}) throw std::runtime_error("wrong sum");
  Tensor m = Tensor::arange(64 * 64).reshape({64, 64}).cast(DType::F32) * (1.0f / 512);
  const Floats product = m.matmul(m).to_vector<float>();
  double expected = 0;
  for (int k = 0; k < 64; ++k) expected += (64.0 * 63 + k) / 512 * (k * 64.0 + 5) / 512;
  if (std::abs(product[63 * 64 + 5] - expected) > 1e-4 * expected)
    throw std::runtime_error("wrong product");
}

Outcome run(const std::string& library, const std::string& device) {
  return run_in_fresh_process([&](Settings& s) { s.device = device; }, [&] { compute(library); });
}

TEST(TodaysHost, RunsAPluginBuiltWithTheFrozenHeaders) {
  EXPECT_EQ(run(FROZEN_PLUGIN, "FROZEN").error, "");
}

TEST(TodaysHost, RunsAPluginBuiltWithTheNextMinor) {
  EXPECT_EQ(run(NEXT_PLUGIN, "NEXT").error, "");
}

TEST(TodaysHost, RunsTheBinariesKeptFromReleases) {
  int kept = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(KEPT_PLUGINS)) {
    if (entry.path().extension() != ".so") continue;
    ++kept;
    EXPECT_EQ(run(entry.path(), "KEPT").error, "") << entry.path();
  }
  EXPECT_GE(kept, 1);
}

TEST(TodaysHost, HasTheCheckingLayersForThemToo) {
  Outcome o = run_in_fresh_process(
      [](Settings& s) {
        s.device = "NEXT";
        s.layers = "validate,redzone";
      },
      [] { compute(NEXT_PLUGIN); });
  EXPECT_EQ(o.error, "");
  EXPECT_THAT(o.log, testing::Not(testing::HasSubstr("error")));
}

}  // namespace
}  // namespace plugrad
