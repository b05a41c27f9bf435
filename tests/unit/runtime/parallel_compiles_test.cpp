// The kernels of one plan compile in parallel, and identical kernels are compiled once.
#include <gtest/gtest.h>

#include "base/settings.h"
#include "base/thread_pool.h"
#include "engine/kernels/kernel_cache.h"
#include "unit/runtime/fake_plugins.h"

using namespace plugrad;
using namespace plugrad::runtime;

namespace {

engine::KernelRequest request(Device& device, const std::string& source) {
  engine::UserKernelCode code;
  code.name = "kernel";
  code.sources = {{"FAKE", source}};
  return {nullptr, &device, std::make_shared<const engine::UserKernelCode>(std::move(code))};
}

}  // namespace

TEST(ParallelCompiles, TwoOfAPlan_AreUnderWayAtOnce) {
  if (thread_count() < 2) GTEST_SKIP() << "one thread compiles one kernel at a time";
  FakePlugins plugins;
  plugins.add("fake");
  TemporaryDirectory cache_folder;
  SettingScope scope([&](Settings& s) { s.cache_dir = cache_folder.path(); });
  Registry registry(plugins.options());
  Device& device = registry.find_device("FAKE");
  engine::KernelCache cache;
  const std::vector<engine::KernelRequest> plan = {
      request(device, "meet a"), request(device, "meet b"), request(device, "meet a")};
  const auto ready = cache.get(plan, {});  // throws if the two are not compiled concurrently
  EXPECT_EQ(cache.made(), 2u);
  EXPECT_EQ(ready[0], ready[2]);
  EXPECT_NE(ready[0], ready[1]);
}
