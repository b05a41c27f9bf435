// Runs a C plugin built with the frozen headers in the current host.
#include <gtest/gtest.h>

#include "abi/plugin_host.h"

namespace plugrad::abi {
namespace {

TEST(FrozenHeaders, APluginInCOfTheFrozenMinorIsUnderstood) {
  const pgr_plugin_api* api = open_plugin(ABSENT_PLUGIN);
  ASSERT_NE(api, nullptr);
  pgr_plugin_info info;
  PGR_INIT(info, PLUGIN_INFO);
  Error error;
  ASSERT_EQ(api->info(api->plugin, &info, error.get()), PGR_STATUS_OK);
  EXPECT_EQ(std::string(info.device_name.data, info.device_name.size), "ABSENT");
  EXPECT_EQ(info.option_count, 0u);
}

TEST(FrozenHeaders, MissingHardwareIsZeroDevicesAndAReason) {
  const pgr_plugin_api* api = open_plugin(ABSENT_PLUGIN);
  uint32_t count = 7;
  Error error;
  EXPECT_EQ(api->device_count(api->plugin, &count, error.get()), PGR_STATUS_OK);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(error.message(), "no /dev/absent0");
  pgr_device* device = nullptr;
  EXPECT_EQ(api->device_open(api->plugin, 0, nullptr, 0, 0, &device, error.get()),
            PGR_STATUS_NOT_FOUND);
  EXPECT_EQ(error.message(), "there are no ABSENT devices");
}

}  // namespace
}  // namespace plugrad::abi
