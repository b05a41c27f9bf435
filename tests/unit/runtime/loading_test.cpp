// Records of valid and faulty plugins, and survival of the process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/settings.h"
#include "plugrad/error.h"
#include "runtime/discovery/probe_process.h"
#include "unit/runtime/fake_plugins.h"

using namespace plugrad::runtime;
using testing::HasSubstr;

namespace {

LoadRecord record_of(Registry& registry, const std::string& name) {
  for (const LoadRecord& r : registry.records())
    if (r.path.ends_with("libplugrad_plugin_" + name + ".so")) return r;
  return {};
}

// The record after everything that can be opened has been.
LoadRecord opened_record(FakePlugins& plugins, const std::string& name) {
  Registry registry(plugins.options());
  registry.open_all();
  return record_of(registry, name);
}

struct Bad {
  const char* name;
  LoadStage stage;
  const char* reason;
};

}  // namespace

TEST(Loading, AGoodPluginIsOnlyOpenedWhenSelected) {
  FakePlugins plugins;
  plugins.add("good");
  Registry registry(plugins.options());
  EXPECT_EQ(record_of(registry, "good").state, LoadState::Available);
  EXPECT_EQ(record_of(registry, "good").stage, LoadStage::Probes);
  Device& device = registry.find_device("good");
  EXPECT_EQ(device.name(), "GOOD:0");
  EXPECT_EQ(device.info().name, "Fake Zero");
  EXPECT_EQ(device.caps().threads, 3u);
  EXPECT_EQ(device.caps().cache_line_bytes, 0u);
  EXPECT_THAT(device.claims(), testing::ElementsAre("pgr.device", "pgr.allocator", "pgr.runner",
                                                    "pgr.renderer", "pgr.compiler"));
  EXPECT_EQ(record_of(registry, "good").state, LoadState::Loaded);
  EXPECT_EQ(record_of(registry, "good").stage, LoadStage::Devices);
}

TEST(Loading, EachBadPluginIsRefusedWithItsReason) {
  const Bad bad[] = {
      {"throws", LoadStage::Entry, "an exception left the plugin: thrown by entry"},
      {"fails", LoadStage::Entry, "its entry answered IO_ERROR: its firmware file is missing"},
      {"newer", LoadStage::Entry, "it needs a newer host: plugin ABI 1.42; this host speaks 1.0"},
      {"silent", LoadStage::Entry, "did not answer the hello"},
      {"other_layout", LoadStage::Entry, "its headers lay out pgr_error differently"},
      {"null_table", LoadStage::Table, "the table is NULL"},
      {"wrong_id", LoadStage::Table, "the table is of another kind"},
      {"null_slot", LoadStage::Table, "its table lacks the function device_open"},
      {"short_table", LoadStage::Table, "its table lacks the function device_count"},
      {"lies", LoadStage::Table, "it says that its device name is \"LIAR\", its manifest \"LIES\""},
  };
  FakePlugins plugins;
  for (const Bad& b : bad) plugins.add(b.name);
  plugins.add("good");
  Registry registry(plugins.options());
  EXPECT_EQ(registry.open_all().size(), 2u) << "the good one's two devices";
  for (const Bad& b : bad) {
    LoadRecord r = record_of(registry, b.name);
    EXPECT_EQ(r.state, LoadState::Refused) << b.name;
    EXPECT_EQ(r.stage, b.stage) << b.name << " at " << to_string(r.stage);
    EXPECT_THAT(r.reason, HasSubstr(b.reason)) << b.name;
  }
}

TEST(Loading, LibrariesWithoutTheEntryAreRefused) {
  FakePlugins plugins;
  plugins.add("major", "", "fake_v2");
  plugins.add("empty", "", "fake_empty");
  std::filesystem::create_directory(plugins.path() + "/libplugrad_plugin_directory.so");
  std::ofstream(plugins.path() + "/libplugrad_plugin_text.so") << "not a library";
  std::ofstream(plugins.path() + "/libplugrad_plugin_text.json")
      << R"({"name": "text", "device_name": "TEXT", "abi": {"major": 1, "minor_low": 0, "minor_high": 0}})";
  Registry registry(plugins.options());
  registry.open_all();
  EXPECT_THAT(record_of(registry, "major").reason, HasSubstr("built for plugin ABI 2.x"));
  EXPECT_EQ(record_of(registry, "empty").reason, "it exports no symbol pgr_plugin_entry_v1");
  EXPECT_EQ(record_of(registry, "directory").reason, "it is a directory, not a file");
  EXPECT_EQ(record_of(registry, "text").stage, LoadStage::Library);
  EXPECT_EQ(record_of(registry, "text").reason, "it is not a library: it is no ELF file");
}

TEST(Loading, ManifestsAreReadFirstAndCheckedStrictly) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "it has no manifest"},
      {"{", "not valid JSON"},
      {"[]", "not a JSON object"},
      {R"({"name": "bad"})", "\"device_name\" is missing"},
      {R"({"name": "bad", "device_name": 3})", "\"device_name\" is not text"},
      {R"({"name": "bad", "device_name": "BAD"})", "\"abi\" is missing"},
      {R"({"name": "bad", "device_name": "BAD", "abi": 9})", "\"abi\" is not an object"},
      {R"({"name": "bad", "device_name": "BAD", "abi": {"major": 1}})",
       "\"abi.minor_low\" is missing"},
      {R"({"name": "bad", "device_name": "BAD", "abi": {"major": 2, "minor_low": 0, "minor_high": 3}})",
       "built for plugin ABI 2.x"},
      {R"({"name": "bad", "device_name": "BAD", "abi": {"major": 1, "minor_low": 10, "minor_high": 12}})",
       "needs a newer host"},
      {R"({"name": "bad", "device_name": "b d", "abi": {"major": 1, "minor_low": 0, "minor_high": 0}})",
       "not upper case"},
      {R"({"name": "bad", "device_name": "BAD", "priority": -5, "abi": {"major": 1, "minor_low": 0, "minor_high": 0}})",
       "\"priority\" is -5"},
      {R"({"name": "bad", "device_name": "BAD", "probes": [1], "abi": {"major": 1, "minor_low": 0, "minor_high": 0}})",
       "\"probes\" holds something that is no text"},
      {R"({"name": "bad", "device_name": "BAD", "sanitizer": "memory", "abi": {"major": 1, "minor_low": 0, "minor_high": 0}})",
       "built with the sanitizer \"memory\""},
  };
  for (auto& [manifest, reason] : cases) {
    FakePlugins plugins;
    plugins.add_with_manifest("bad", manifest);
    LoadRecord r = opened_record(plugins, "bad");
    EXPECT_EQ(r.state, LoadState::Refused) << manifest;
    EXPECT_EQ(r.stage, LoadStage::Manifest) << manifest;
    EXPECT_THAT(r.reason, HasSubstr(reason)) << manifest;
  }
}

TEST(Loading, AWorldWritableFileOrDirectoryIsRefused) {
  for (const char* part : {"/libplugrad_plugin_good.so", "/libplugrad_plugin_good.json", ""}) {
    FakePlugins plugins;
    plugins.add("good");
    ASSERT_EQ(chmod((plugins.path() + part).c_str(), 0777), 0);
    LoadRecord r = opened_record(plugins, "good");
    EXPECT_EQ(r.state, LoadState::Refused) << part;
    EXPECT_EQ(r.stage, LoadStage::Permissions) << part;
    EXPECT_THAT(r.reason, HasSubstr("can be written by everybody")) << part;
    EXPECT_THAT(r.hint, HasSubstr("chmod o-w"));
  }
}

TEST(Loading, AbsentHardwareIsAbsentNotBroken) {
  FakePlugins plugins;
  plugins.add("probed",
              R"(, "probes": ["/nonexistent/*"], "probe_hint": "install the fake driver")");
  plugins.add("found", R"(, "probes": ["/nonexistent/*", "/dev/nul?"])");
  plugins.add("no_devices");
  Registry registry(plugins.options());
  registry.open_all();
  EXPECT_EQ(record_of(registry, "probed").state, LoadState::Absent);
  EXPECT_EQ(record_of(registry, "probed").hint, "install the fake driver");
  EXPECT_EQ(record_of(registry, "found").state, LoadState::Loaded);
  EXPECT_EQ(record_of(registry, "no_devices").state, LoadState::Absent);
  EXPECT_EQ(record_of(registry, "no_devices").reason, "libfake.so.1 was not found");
}

TEST(Loading, ADeviceThatLacksAMandatoryInterfaceIsAnErrorThatNamesIt) {
  FakePlugins plugins;
  plugins.add("no_allocator");
  plugins.add("unopenable");
  Registry registry(plugins.options());
  EXPECT_THAT(message_of([&] { registry.find_device("no_allocator"); }),
              HasSubstr("lacks the mandatory interface pgr.allocator"));
  EXPECT_EQ(message_of([&] { registry.find_device("unopenable"); }),
            "[device_open] UNOPENABLE:0: /dev/fake0 is locked (PERMISSION_DENIED)");
}

TEST(Loading, TheFirstOfTwoPluginsOfOneNameWins) {
  FakePlugins first, second;
  first.add("good");
  second.add("good");
  RegistryOptions options = first.options();
  options.places.push_back({second.path(), "later"});
  Registry registry(options);
  registry.open_all();
  EXPECT_EQ(registry.records()[0].state, LoadState::Loaded);
  EXPECT_EQ(registry.records()[1].state, LoadState::Shadowed);
}

TEST(Loading, ARefusedPluginGivesItsPlaceToTheNextOfItsName) {
  FakePlugins first, second;
  first.add_with_manifest(
      "throws",
      R"({"name": "throws", "device_name": "GOOD", "abi": {"major": 1, "minor_low": 0, "minor_high": 0}})");
  second.add("good");
  RegistryOptions options = first.options();
  options.places.push_back({second.path(), "later"});
  Registry registry(options);
  EXPECT_EQ(registry.find_device("good").name(), "GOOD:0");
  EXPECT_EQ(registry.records()[0].state, LoadState::Refused);
  EXPECT_EQ(registry.records()[1].state, LoadState::Loaded);
}

TEST(Loading, OptionsReachTheDevicesThatAreOpenedAfterwards) {
  FakePlugins plugins;
  plugins.add("good");
  Registry registry(plugins.options());
  EXPECT_EQ(registry.find_device("good:0").info().vendor, "");
  registry.set_plugin_options("GOOD", {{"vendor", "Acme"}});
  EXPECT_EQ(registry.find_device("good:1").info().vendor, "Acme");
  RegistryOptions wrong = plugins.options();
  wrong.plugin_options["GOOD"] = {{"colour", "red"}};
  EXPECT_THAT(message_of([&] { Registry(wrong).find_device("good"); }),
              HasSubstr("no such option"));
}

TEST(Loading, AnOptionThatWasGivenGoesBeforeItsDefault) {
  FakePlugins plugins;
  plugins.add("good");
  RegistryOptions options = plugins.options();
  options.default_options["GOOD"] = {{"vendor", "Usual"}};
  Registry registry(options);
  EXPECT_EQ(registry.find_device("good:0").info().vendor, "Usual");
  registry.set_plugin_options("GOOD", {{"vendor", "Acme"}});
  EXPECT_EQ(registry.find_device("good:1").info().vendor, "Acme");
}

TEST(Loading, PLUGRAD_CPU_TARGET_IsAnOptionOfCpu) {
  const plugrad::SettingScope scope([](plugrad::Settings& s) { s.cpu_target = "x86-64-v2"; });
  const auto options = options_from_settings().default_options;
  EXPECT_EQ(options.at("CPU"), (PluginOptions{{"isa", "x86-64-v2"}}));
  const plugrad::SettingScope unset([](plugrad::Settings& s) { s.cpu_target = ""; });
  EXPECT_TRUE(options_from_settings().default_options.empty());
}

TEST(Loading, APluginCanBeAddedByPath) {
  FakePlugins plugins, extra;
  plugins.add("good");
  plugins.add("twice");
  Registry registry(plugins.options());
  std::string added = extra.add("added");
  EXPECT_EQ(registry.add_plugin(added), "ADDED");
  EXPECT_EQ(record_of(registry, "added").state, LoadState::Available) << "opened when selected";
  EXPECT_EQ(registry.find_device("added:1").info().name, "Fake One");
  EXPECT_EQ(registry.add_plugin(added), "ADDED") << "again is no mistake";
  EXPECT_EQ(registry.add_plugin(extra.add("twice")), "TWICE");
  EXPECT_EQ(registry.records()[0].path, extra.path() + "/libplugrad_plugin_twice.so");
  EXPECT_EQ(registry.find_device("twice").name(), "TWICE:0");
  EXPECT_THAT(
      message_of([&] { registry.add_plugin(plugins.path() + "/libplugrad_plugin_twice.so"); }),
      HasSubstr("TWICE is open already, from " + extra.path()));
}

TEST(Loading, AnAddedPluginThatFailsLeavesItsRecord) {
  FakePlugins plugins, extra;
  plugins.add("good");
  Registry registry(plugins.options());
  EXPECT_EQ(registry.add_plugin(extra.add("throws")), "THROWS");
  EXPECT_THAT(message_of([&] { registry.find_device("throws"); }), HasSubstr("thrown by entry"));
  EXPECT_EQ(record_of(registry, "throws").state, LoadState::Refused);
  EXPECT_THAT(message_of([&] { registry.add_plugin("/nonexistent/lib.so"); }),
              HasSubstr("/nonexistent/lib.so: No such file"));
  EXPECT_THAT(message_of([&] { registry.add_plugin("lib.so"); }), HasSubstr("bare name"));
  EXPECT_EQ(registry.records()[0].reason, "it is a bare name, which is looked for nowhere");
  EXPECT_EQ(registry.records()[1].path, "/nonexistent/lib.so");
}

// A lock of another thread, held at the fork, stops a child whatever the plugin does.
TEST(Trial, IsRepeatedWhereAnotherThreadMayHaveStoppedTheChild) {
  std::stop_source end;
  const std::jthread other([ended = end.get_token()] {
    while (!ended.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  const auto file = std::filesystem::temp_directory_path() / ("trial." + std::to_string(getpid()));
  const auto hangs_once = [&] {
    if (std::filesystem::exists(file)) return;
    std::ofstream(file) << "the first child";
    while (true) pause();
  };
  EXPECT_EQ(outcome_in_child(hangs_once, 2000), "");
  EXPECT_TRUE(std::filesystem::remove(file));
  EXPECT_EQ(outcome_in_child(
                [] {
                  while (true) pause();
                },
                100),
            "it had not answered after 0.1 s");
  end.request_stop();
}
