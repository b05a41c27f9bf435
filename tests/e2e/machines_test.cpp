// A device's stored machine parameters are used by plans and kernels until they are cleared.
#include "tuning/calibration/machines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/settings.h"
#include "engine/plan/options.h"
#include "runtime/registry.h"
#include "unit/base/temporary_directory.h"

namespace plugrad::e2e {
namespace {

class Machines : public testing::Test {
 protected:
  Machines() { tuning::forget_calibration(device); }
  ~Machines() override { tuning::forget_calibration(device); }

  TemporaryDirectory folder;
  SettingScope scope{[this](Settings& s) { s.cache_dir = folder.path(); }};
  runtime::Device& device = runtime::Registry::instance().find_device("CPU");
};

TEST_F(Machines, keep_what_was_measured) {
  cost::Machine measured = tuning::table_machine_of(device);
  EXPECT_EQ(*tuning::machine_of(device), measured);
  EXPECT_FALSE(tuning::is_calibrated(device));
  measured.latency = 5;
  measured.levels[3].all = 7;
  ASSERT_EQ(tuning::keep_calibration(device, measured), 0);
  EXPECT_TRUE(tuning::is_calibrated(device));
  EXPECT_EQ(*tuning::machine_of(device), measured);
  EXPECT_TRUE(tuning::forget_calibration(device));
  EXPECT_EQ(*tuning::machine_of(device), tuning::table_machine_of(device));
  EXPECT_FALSE(tuning::forget_calibration(device));
}

TEST_F(Machines, are_of_the_table_where_results_must_be_the_same_everywhere) {
  cost::Machine measured = tuning::table_machine_of(device);
  measured.latency = 5;
  ASSERT_EQ(tuning::keep_calibration(device, measured), 0);
  const SettingScope fixed([](Settings& s) { s.deterministic = true; });
  EXPECT_EQ(*tuning::machine_of(device), tuning::table_machine_of(device));
}

TEST_F(Machines, are_part_of_the_keys_of_plans) {
  engine::DeviceTable devices;
  const uint32_t number = devices.number(device);
  const auto key = [&] {
    const auto options = engine::plan_options(devices, std::span(&number, 1));
    return engine::PlanRequest{number, options, {}}.key({1, 2});
  };
  const Hash128 before = key();
  EXPECT_EQ(key(), before);
  cost::Machine measured = tuning::table_machine_of(device);
  measured.wake_cycles = 9000;
  ASSERT_EQ(tuning::keep_calibration(device, measured), 0);
  EXPECT_NE(key(), before);
  tuning::forget_calibration(device);
  EXPECT_EQ(key(), before);
}

}  // namespace
}  // namespace plugrad::e2e
