// Every plugin of this build has a device on this machine, or reports what it lacks.
#include <gtest/gtest.h>

#include "devices/at_hand.h"
#include "plugrad/error.h"

using namespace plugrad;

TEST(Devices, EveryPluginHasOneOrSaysWhatIsMissing) {
  const auto names = devices_at_hand();
  for (const runtime::LoadRecord& record : runtime::Registry::instance().records()) {
    const std::string& plugin = record.manifest.device_name;
    SCOPED_TRACE(plugin + ": " + record.reason);
    if (needs_hardware(plugin) && record.state == runtime::LoadState::Absent) {
      EXPECT_FALSE(record.reason.empty());
      EXPECT_FALSE(record.hint.empty());
      continue;
    }
    EXPECT_EQ(record.state, runtime::LoadState::Loaded)
        << "tools/setup --all installs what this device needs: " << record.hint;
    EXPECT_EQ(std::ranges::count(names, plugin + ":0"), 1);
  }
}

TEST(Devices, SaysWhatIsMissingWhereADeviceIsAskedForThatIsNotThere) {
  devices_at_hand();
  for (const runtime::LoadRecord& record : runtime::Registry::instance().records()) {
    if (record.state != runtime::LoadState::Absent) continue;
    try {
      runtime::Registry::instance().find_device(record.manifest.device_name);
      ADD_FAILURE() << record.manifest.device_name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(record.reason), std::string::npos) << error.what();
    }
  }
}
