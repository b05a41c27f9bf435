// Plugin discovery opens no plugin.
#include <gtest/gtest.h>

#include <fstream>

#include "unit/runtime/fake_plugins.h"

using namespace plugrad::runtime;

namespace {

// Files of the directory that this process has mapped.
int mapped_from(const std::string& directory) {
  std::ifstream maps("/proc/self/maps");
  int found = 0;
  for (std::string line; std::getline(maps, line);) found += line.find(directory) != line.npos;
  return found;
}

}  // namespace

TEST(Discovery, TwentyPluginsAreFoundAndNoneIsOpened) {
  FakePlugins plugins;
  for (int i = 0; i < 20; ++i) plugins.add("p" + std::to_string(i));
  Registry registry(plugins.options());
  EXPECT_EQ(registry.records().size(), 20u);
  for (const LoadRecord& r : registry.records()) EXPECT_EQ(r.state, LoadState::Available);
  EXPECT_EQ(mapped_from(plugins.path()), 0);
}

TEST(Discovery, OnlyTheSelectedPluginIsOpened) {
  FakePlugins plugins;
  for (const char* name : {"one", "two", "three"}) plugins.add(name);
  Registry registry(plugins.options());
  EXPECT_EQ(registry.find_device("two").name(), "TWO:0");
  EXPECT_GT(mapped_from(plugins.path() + "/libplugrad_plugin_two.so"), 0);
  EXPECT_EQ(mapped_from(plugins.path() + "/libplugrad_plugin_one.so"), 0);
  EXPECT_EQ(mapped_from(plugins.path() + "/libplugrad_plugin_three.so"), 0);
}

TEST(Discovery, AFileAmongTheDirectoriesNamesTheSettingForFiles) {
  FakePlugins plugins;
  RegistryOptions options;
  const std::string file = plugins.add("one");
  options.places = {{file, "PLUGRAD_PLUGIN_PATH", false, true},
                    {file + "/none", "PLUGRAD_PLUGIN_PATH", false, true}};
  const std::vector<LoadRecord> records = Registry(options).records();
  ASSERT_EQ(records.size(), 2u);
  const std::string hint = "PLUGRAD_PLUGIN_PATH takes paths of directories, joined by ':'";
  EXPECT_EQ(records[0].hint, hint + "; PLUGRAD_PLUGIN_FILES takes plugin files");
  EXPECT_EQ(records[1].hint, hint);
}
