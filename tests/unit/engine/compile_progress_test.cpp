#include "engine/kernels/compile_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"

using namespace plugrad;
using namespace plugrad::engine;
using namespace std::chrono_literals;

namespace {

class CompileProgressTest : public testing::Test {
 protected:
  CompileProgressTest() {
    set_log_sink(
        [](std::string_view text, void* to) {
          auto& self = *static_cast<CompileProgressTest*>(to);
          const std::lock_guard lock(self.mutex);
          self.told += text;
        },
        this);
  }
  ~CompileProgressTest() override { set_log_sink(nullptr, nullptr); }
  bool told_within(std::string_view text, std::chrono::milliseconds most) {
    for (auto waited = 0ms; waited < most; waited += 5ms) {
      {
        const std::lock_guard lock(mutex);
        if (told.find(text) != told.npos) return true;
      }
      std::this_thread::sleep_for(5ms);
    }
    return false;
  }
  std::mutex mutex;
  std::string told;
};

}  // namespace

TEST_F(CompileProgressTest, WhoWaits_IsTold) {
  {
    CompileProgress progress(3, "OPENCL:0", {.after = 20ms, .redraw = 20ms, .every = 20ms});
    EXPECT_TRUE(told_within("compiling 1 of 3 kernels for OPENCL:0", 10s));
    progress.count();
    progress.count();
    EXPECT_TRUE(told_within("compiling 3 of 3 kernels for OPENCL:0", 10s));
    progress.count();
    std::this_thread::sleep_for(60ms);
  }
  EXPECT_EQ(told.find("compiling 4"), std::string::npos);
}

TEST_F(CompileProgressTest, WhatIsQuick_SaysNothing) {
  for (int i = 0; i < 3; ++i) {
    CompileProgress progress(5, "CPU:0");
    progress.count();
  }
  EXPECT_EQ(told, "");
}

TEST_F(CompileProgressTest, ANegativeDebug_IsSilent) {
  const SettingScope scope([](Settings& s) { s.debug = -1; });
  {
    CompileProgress progress(5, "CPU:0", {.after = 1ms, .redraw = 1ms, .every = 1ms});
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(told, "");
}
