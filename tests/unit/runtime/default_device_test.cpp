// The device chosen by a selection, the environment and the default rule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "plugrad/error.h"
#include "unit/runtime/fake_plugins.h"

using namespace plugrad::runtime;
using testing::HasSubstr;

namespace {

class Choosing : public testing::Test {
 protected:
  void SetUp() override {
    plugins.add("low", R"(, "priority": 100)");
    plugins.add("high", R"(, "priority": 300)");
    plugins.add("never", R"(, "priority": 0)");
    plugins.add("software", R"(, "priority": 900)");
    plugins.add("emulated", R"(, "priority": 800, "default_probes": ["/nonexistent*"])");
    plugins.add(
        "absent",
        R"(, "priority": 950, "probes": ["/nonexistent", "/none/b", "/none/c", "/none/d", "/none/e"])");
  }
  std::string default_with(const std::string& selection, const std::string& visible = "") {
    return Registry(plugins.options(selection, visible)).default_device().name();
  }
  std::string refusal(const std::string& selection) {
    return message_of([&] { default_with(selection); });
  }
  FakePlugins plugins;
};

}  // namespace

TEST_F(Choosing, TheRuleTakesTheHighestPriorityThatIsNotSoftware) {
  EXPECT_EQ(default_with(""), "HIGH:0");
}

TEST_F(Choosing, TheRuleDoesNotOpenWhatHasNoHardwareHere) {
  Registry registry(plugins.options("", ""));
  EXPECT_EQ(registry.default_device().name(), "HIGH:0");
  for (const LoadRecord& record : registry.records()) {
    if (record.manifest.name == "emulated") {
      EXPECT_EQ(record.state, LoadState::Available);
    }
  }
}

TEST_F(Choosing, SelectionsByExample) {
  EXPECT_EQ(default_with("low"), "LOW:0");
  EXPECT_EQ(default_with("low:1"), "LOW:1");
  EXPECT_EQ(default_with("absent,low"), "LOW:0");
  EXPECT_EQ(default_with("cuda,low"), "LOW:0")
      << "a plugin of ours that is not installed is no mistake";
  EXPECT_EQ(default_with("!high"), "LOW:0");
  EXPECT_EQ(default_with("!high:0"), "HIGH:1");
  EXPECT_EQ(default_with("high:name=*one"), "HIGH:1");
  EXPECT_EQ(default_with("low:uuid=FAKE-b*"), "LOW:1");
  EXPECT_EQ(default_with("software"), "SOFTWARE:0") << "asked for, it may be software";
  EXPECT_EQ(default_with("never"), "NEVER:0");
  EXPECT_EQ(default_with("emulated"), "EMULATED:0") << "asked for, it needs no hardware";
}

TEST_F(Choosing, ANumberAloneTakesWhatMayBeTheDefault) {
  EXPECT_EQ(default_with("0"), "HIGH:0");
  EXPECT_EQ(default_with("!high,1"), "LOW:1");
  EXPECT_EQ(default_with("name=Fake Zero"), "SOFTWARE:0") << "named, it may be software";
  EXPECT_THAT(refusal("!high,!low,0"), HasSubstr("no device is available for"));
}

TEST_F(Choosing, AnEmulatedDeviceThatIsNotNamedItselfIsReportedOnce) {
  std::string seen;
  plugrad::set_log_sink([](std::string_view t, void* c) { *static_cast<std::string*>(c) += t; },
                        &seen);
  Registry registry(plugins.options());
  registry.find_device("software:name=*Zero");
  registry.find_device("low");
  EXPECT_EQ(seen, "");
  registry.set_default_device("software");
  registry.set_default_device("software:0");
  plugrad::set_log_sink(nullptr, nullptr);
  EXPECT_EQ(seen,
            "plugrad: warning: \"software\" in the default device is SOFTWARE:0 (Fake Zero), which "
            "is emulated on the CPU; \"CPU\" is the CPU itself\n");
}

TEST_F(Choosing, AnUnknownNameIsAnErrorWithTheNearest) {
  EXPECT_THAT(refusal("hihg"),
              testing::StartsWith("unknown device \"hihg\" in DEV\n"
                                  "       hihg\n"
                                  "       ^~~~ did you mean HIGH? plugins found:"));
  EXPECT_THAT(refusal("low,banana"),
              HasSubstr("\n       low,banana\n           ^~~~~~ plugins found:"));
}

TEST_F(Choosing, AFailedSelectionShowsTheRecords) {
  EXPECT_THAT(refusal("absent"), HasSubstr("ABSENT"));
  EXPECT_THAT(refusal("absent"),
              HasSubstr("none of /nonexistent, /none/b, /none/c and 2 more paths exists"));
  const std::string twice = refusal("absent,absent:1");
  EXPECT_EQ(twice.find("none of /nonexistent"), twice.rfind("none of /nonexistent"));
  EXPECT_EQ(twice.find("ABSENT:"), twice.rfind("ABSENT:")) << twice;
  EXPECT_THAT(refusal("high:7"), HasSubstr("HIGH has 2 devices"));
  EXPECT_THAT(refusal("cuda"), HasSubstr("no device is available for \"cuda\""));
}

TEST_F(Choosing, NoPluginAtAllSaysWhereToLook) {
  RegistryOptions options;
  options.places = {{"/nonexistent", "test"}};
  EXPECT_THAT(message_of([&] { Registry(options).default_device(); }),
              HasSubstr("PLUGRAD_PLUGIN_PATH"));
}

TEST_F(Choosing, NameEqualsOneChoosesAndTwoOfThemConflict) {
  RegistryOptions options = plugins.options();
  options.environment = [](const char* name) {
    return std::string(name) == "LOW" ? std::optional<std::string>("1") : std::nullopt;
  };
  EXPECT_EQ(Registry(options).default_device().name(), "LOW:0");
  options.selection = "high";
  EXPECT_EQ(Registry(options).default_device().name(), "HIGH:0") << "DEV wins";
  options.selection = "";
  options.environment = [](const char* name) {
    bool set = std::string(name) == "LOW" || std::string(name) == "HIGH";
    return set ? std::optional<std::string>("1") : std::nullopt;
  };
  EXPECT_THAT(message_of([&] { Registry(options).default_device(); }),
              HasSubstr("both choose a device"));
}

TEST_F(Choosing, VisibleDevicesFilterAndRenumber) {
  Registry one(plugins.options("", "high:1,low"));
  EXPECT_EQ(one.default_device().name(), "HIGH:0");
  EXPECT_EQ(one.default_device().info().name, "Fake One");
  EXPECT_EQ(one.find_device("low:1").info().name, "Fake One");
  EXPECT_THAT(message_of([&] { one.find_device("high:1"); }), HasSubstr("HIGH has 1 device"));
  EXPECT_THAT(message_of([&] { one.find_device("never"); }), HasSubstr("hides its devices"));
  Registry swapped(plugins.options("", "high:1,high:0"));
  EXPECT_EQ(swapped.find_device("high:1").info().name, "Fake Zero");
  Registry without(plugins.options("", "!high"));
  EXPECT_EQ(without.default_device().name(), "LOW:0");
  Registry by_identity(plugins.options("", "uuid=FAKE-b*"));
  EXPECT_EQ(by_identity.default_device().info().name, "Fake One");
}

TEST_F(Choosing, TheDefaultCanBeSetInCodeAndUnset) {
  Registry registry(plugins.options());
  registry.set_default_device("low:1");
  EXPECT_EQ(registry.default_device().name(), "LOW:1");
  EXPECT_THAT(message_of([&] { registry.set_default_device("banana"); }),
              HasSubstr("unknown device"));
  EXPECT_EQ(registry.default_device().name(), "LOW:1") << "a failed choice changes nothing";
  registry.set_default_device("");
  EXPECT_EQ(registry.default_device().name(), "HIGH:0");
}

TEST_F(Choosing, NamesInsideListsAndExclusionsAreCheckedToo) {
  EXPECT_THAT(refusal("low,!hihg"), testing::StartsWith("unknown device \"hihg\" in DEV\n"
                                                        "       low,!hihg\n"
                                                        "            ^~~~ did you mean HIGH? "));
  EXPECT_THAT(refusal("!banana"), HasSubstr("unknown device \"banana\""));
  EXPECT_THAT(message_of([&] { default_with("", "high,lwo"); }),
              HasSubstr("unknown device \"lwo\" in PLUGRAD_VISIBLE_DEVICES\n"
                        "       high,lwo\n"
                        "            ^~~ did you mean LOW? "));
}

TEST_F(Choosing, ANameOrIdThatNoDeviceHasShowsThoseThereAreAndTheNearest) {
  EXPECT_THAT(
      refusal("high:name=Fake Onne"),
      HasSubstr("\n       high:name=Fake Onne\n            ^~~~~~~~~~~~~~ no device of HIGH "
                "has name \"Fake Onne\"; there are: Fake Zero, Fake One; did you mean "
                "name=Fake One? plugins found:"));
  EXPECT_THAT(refusal("low:uuid=FAKE-bbbc"), HasSubstr("did you mean uuid=FAKE-bbbb?"));
}

TEST_F(Choosing, ANumberThatDoesNotExistIsToldBeforeADeviceIsOpened) {
  Registry registry(plugins.options());
  EXPECT_THAT(message_of([&] { registry.require_numbers("low:1,high:2"); }),
              testing::StartsWith("no device HIGH:2 in device\n"
                                  "       low:1,high:2\n"
                                  "                  ^ HIGH has 2 devices: 0 to 1"));
  EXPECT_TRUE(registry.devices().empty());
  EXPECT_EQ(message_of([&] { registry.require_numbers("low:1,high,absent:7"); }), "no error");
}

TEST_F(Choosing, VisibleDevicesThatDoNotExistAreAnErrorEachTime) {
  Registry registry(plugins.options("", "high:2,low"));
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(message_of([&] { registry.find_device("high"); }),
                testing::StartsWith("no device HIGH:2 in PLUGRAD_VISIBLE_DEVICES\n"
                                    "       high:2,low\n"
                                    "            ^ HIGH has 2 devices: 0 to 1"));
}

TEST_F(Choosing, ADeviceThatCannotBeOpenedGivesWayInAList) {
  plugins.add("unopenable", R"(, "priority": 999)");
  EXPECT_EQ(default_with("unopenable,low"), "LOW:0");
  EXPECT_EQ(default_with(""), "HIGH:0");
  EXPECT_EQ(refusal("unopenable"),
            "[device_open] UNOPENABLE:0: /dev/fake0 is locked (PERMISSION_DENIED)");
  EXPECT_THAT(refusal("unopenable,absent"), HasSubstr("/dev/fake0 is locked"));
}

TEST_F(Choosing, APluginOfWhichNoDeviceOpensGivesWayToTheNextOfItsName) {
  const auto with_another_high = [&](const std::string& selection) {
    FakePlugins first;
    first.add_with_manifest("high_unopenable",
                            R"({"name": "high", "device_name": "HIGH", "priority": 300,)"
                            R"( "abi": {"major": 1, "minor_low": 0, "minor_high": 0}})");
    RegistryOptions options = plugins.options(selection);
    options.places.insert(options.places.begin(), {first.path(), "before the others"});
    Registry registry(options);
    const std::string name = registry.default_device().name();
    const LoadRecord refused = registry.records()[0];
    EXPECT_EQ(refused.state, LoadState::Refused);
    EXPECT_THAT(refused.reason, HasSubstr("/dev/fake0 is locked"));
    EXPECT_THAT(registry.open_all(), testing::SizeIs(testing::Ge(4u)));
    return name;
  };
  EXPECT_EQ(with_another_high(""), "HIGH:0");
  EXPECT_EQ(with_another_high("high:1"), "HIGH:1");
}

TEST_F(Choosing, ADeviceThatWasGivenOptionsDoesNotGiveWay) {
  plugins.add("unopenable", R"(, "priority": 999)");
  RegistryOptions options = plugins.options();
  options.default_options["UNOPENABLE"] = {{"vendor", "Acme"}};
  EXPECT_EQ(message_of([&] { Registry(options).default_device(); }),
            "[device_open] UNOPENABLE:0: /dev/fake0 is locked (PERMISSION_DENIED)");
}
