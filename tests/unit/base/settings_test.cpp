#include "base/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "base/text.h"
#include "plugrad/error.h"

using namespace plugrad;

namespace {

Settings read(const std::map<std::string, std::string>& variables) {
  return read_settings([&](const char* name) -> std::optional<std::string> {
    auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string refusal(const std::map<std::string, std::string>& variables) {
  try {
    read(variables);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::User);
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST(Settings, EveryVariableReachesItsField) {
  Settings s = read({{"DEV", "CUDA:1"},
                     {"DEBUG", "4"},
                     {"NOOPT", "1"},
                     {"BEAM", "8"},
                     {"BEAM_SECONDS", "2.5"},
                     {"JIT", "0"},
                     {"PLUGRAD_MPI", "abi"},
                     {"PLUGRAD_COLLECTIVE_SECONDS", "0.5"},
                     {"PLUGRAD_THREADS", "3"},
                     {"PLUGRAD_MEMORY_LIMIT", "512M"},
                     {"PLUGRAD_CACHE_LIMIT", "3G"},
                     {"PLUGRAD_FAST_MATH", "1"},
                     {"PLUGRAD_DETERMINISTIC", "1"},
                     {"TF32", "1"},
                     {"PLUGRAD_CHECK_INDICES", "1"},
                     {"PLUGRAD_VERIFY", "1"},
                     {"PLUGRAD_DUMP", "expand"},
                     {"PLUGRAD_TRACE", "t.trace"},
                     {"PLUGRAD_TRACE_RULES", "1"},
                     {"PLUGRAD_TRACE_LIMIT", "1M"},
                     {"VIZ", "1"},
                     {"PLUGRAD_DATA", "/d"},
                     {"PLUGRAD_CACHE_DIR", "/c"},
                     {"PLUGRAD_PLUGIN_FILES", "/a.so"},
                     {"PLUGRAD_PLUGIN_PATH", "/p"},
                     {"PLUGRAD_TRUST_PLUGINS", "/t"},
                     {"PLUGRAD_VISIBLE_DEVICES", "cpu"},
                     {"PLUGRAD_LAYERS", "check"},
                     {"PLUGRAD_CPU_TARGET", "x86-64-v3"},
                     {"NO_COLOR", ""}});
  EXPECT_EQ(s.device, "CUDA:1");
  EXPECT_EQ(s.debug, 4);
  EXPECT_TRUE(s.noopt);
  EXPECT_TRUE(s.tf32 && s.deterministic);
  EXPECT_EQ(s.beam, 8);
  EXPECT_EQ(s.beam_seconds, 2.5);
  EXPECT_EQ(s.jit, 0);
  EXPECT_EQ(s.mpi, "abi");
  EXPECT_EQ(s.collective_seconds, 0.5);
  EXPECT_EQ(s.threads, 3);
  EXPECT_EQ(s.memory_limit_bytes, 512u << 20);
  EXPECT_EQ(s.cache_limit_bytes, uint64_t{3} << 30);
  EXPECT_TRUE(s.fast_math && s.verify);
  EXPECT_EQ(s.dump + s.trace_path + s.data_dir + s.cache_dir, "expandt.trace/d/c");
  EXPECT_EQ(s.plugin_files + s.plugin_path + s.trust_plugins + s.visible_devices + s.layers +
                s.cpu_target,
            "/a.so/p/tcpucheckx86-64-v3");
  EXPECT_FALSE(s.color);
}

TEST(Settings, DevWinsOverItsAliasAndEmptyIsUnset) {
  EXPECT_EQ(read({{"DEVICE", "cpu"}}).device, "cpu");
  EXPECT_EQ(read({{"DEVICE", "cpu"}, {"DEV", "cuda"}}).device, "cuda");
  EXPECT_EQ(read({{"DEBUG", ""}}).debug, 0);
}

TEST(Settings, MalformedValuesAreErrorsThatSayWhatIsValid) {
  EXPECT_EQ(refusal({{"DEBUG", "two"}}),
            "[settings] DEBUG=\"two\" is not valid: it takes a whole number from -1 to 9");
  EXPECT_EQ(refusal({{"NOOPT", "yes"}}), "[settings] NOOPT=\"yes\" is not valid: it takes 0 or 1");
  EXPECT_THAT(refusal({{"BEAM_SECONDS", "-1"}}), testing::HasSubstr("seconds"));
  EXPECT_THAT(refusal({{"BEAM_SECONDS", "nan"}}), testing::HasSubstr("seconds"));
  EXPECT_THAT(refusal({{"PLUGRAD_COLLECTIVE_SECONDS", "0"}}),
              testing::HasSubstr("seconds above 0"));
  for (const char* bad : {"1Q", "M", "-5", "1.5G", "99999999999G", "12 M"})
    EXPECT_THAT(refusal({{"PLUGRAD_MEMORY_LIMIT", bad}}), testing::HasSubstr("512M")) << bad;
  EXPECT_THAT(refusal({{"PLUGRAD_THREADS", "100000"}}), testing::HasSubstr("256"));
  EXPECT_EQ(refusal({{"PLUGRAD_CPU_TARGET", "avx2"}}),
            "[settings] PLUGRAD_CPU_TARGET=\"avx2\" is not valid: it takes one of native, "
            "x86-64-v4, x86-64-v3, x86-64-v2, x86-64");
}

TEST(Text, NearestNameIsOneThatIsLikelyMeant) {
  std::vector<std::string> known = {"CPU", "CUDA", "VULKAN", "OPENCL"};
  EXPECT_EQ(nearest_name("cudda", known), "CUDA");
  EXPECT_EQ(nearest_name("vulcan", known), "VULKAN");
  EXPECT_EQ(nearest_name("cp", known), "CPU");
  EXPECT_EQ(nearest_name("OPNECL", known), "OPENCL") << "swapped letters";
  EXPECT_EQ(nearest_name("banana", known), "");
}

TEST(Settings, AMisspeltVariableIsNoticed) {
  const char* environment[] = {
      "PLUGRAD_THREDS=4", "PLUGRAD_THREADS=4", "PLUGRAD_BANANA=1", "PATH=/bin", "DEB=1", nullptr};
  EXPECT_THAT(
      unknown_settings(environment),
      testing::ElementsAre("PLUGRAD_THREDS is no setting of plugrad; did you mean PLUGRAD_THREADS?",
                           "PLUGRAD_BANANA is no setting of plugrad"));
}

TEST(SettingScope, HoldsOnItsThreadAndEndsWithIt) {
  bool before = settings().noopt;
  {
    SettingScope outer([](Settings& s) { s.noopt = true; });
    EXPECT_TRUE(settings().noopt);
    {
      SettingScope inner([](Settings& s) {
        s.noopt = false;
        s.beam = 5;
      });
      EXPECT_FALSE(settings().noopt);
      EXPECT_EQ(settings().beam, 5);
    }
    EXPECT_TRUE(settings().noopt);
    std::thread([&] { EXPECT_EQ(settings().noopt, before); }).join();
  }
  EXPECT_EQ(settings().noopt, before);
}

TEST(Settings, ProcessWideChangeReachesOtherThreadsButNotAScope) {
  int before = settings().beam;
  SettingScope scope([](Settings& s) { s.beam = 1; });
  change_settings([](Settings& s) { s.beam = 77; });
  EXPECT_EQ(settings().beam, 1);
  std::thread([] { EXPECT_EQ(settings().beam, 77); }).join();
  change_settings([&](Settings& s) { s.beam = before; });
}

TEST(Settings, ThreadCountIsResolved) {
  EXPECT_GE(thread_count(), 1);
  SettingScope scope([](Settings& s) { s.threads = 7; });
  EXPECT_EQ(thread_count(), 7);
}
