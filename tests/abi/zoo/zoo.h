// A registry of one directory of hostile files, with their records.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/settings.h"
#include "unit/runtime/fake_plugins.h"

namespace plugrad::runtime {

class Zoo {
 public:
  /// Looks up the plugin's device in a registry with a second, valid plugin, which must always
  /// work.
  void find(const std::string& selection, const std::string& visible = "") {
    if (!std::filesystem::exists(plugins.path() + "/libplugrad_plugin_good.so"))
      plugins.add("good", "", "zoo");
    RegistryOptions options = plugins.options("", visible);
    if (selection.starts_with("hang")) options.trial_limit_ms = 1000;
    Registry registry(options);
    error = message_of([&] { found = registry.find_device(selection).info(); });
    for (const LoadRecord& r : registry.records())
      if (!r.path.ends_with("_good.so")) record = r;
    EXPECT_EQ(message_of([&] { registry.find_device("good"); }), "no error");
  }

  TemporaryDirectory cache;
  SettingScope scope{[this](Settings& s) { s.cache_dir = cache.path(); }};
  FakePlugins plugins;
  LoadRecord record;
  std::string error;
  DeviceInfo found;
};

struct Expected {
  LoadStage stage;
  LoadState state;
  const char* reason;  // part of the reason; empty: none
};

inline void expect_record(const LoadRecord& record, const Expected& expected) {
  EXPECT_STREQ(to_string(record.stage), to_string(expected.stage));
  EXPECT_STREQ(to_string(record.state), to_string(expected.state));
  if (*expected.reason)
    EXPECT_THAT(record.reason, testing::HasSubstr(expected.reason));
  else
    EXPECT_EQ(record.reason, "");
}

}  // namespace plugrad::runtime
