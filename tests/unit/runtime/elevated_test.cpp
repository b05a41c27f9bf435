// A program with elevated privileges ignores environment variables and the user's directory. Runs
// as a copy of this program with another group than the caller's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/settings.h"
#include "unit/runtime/fake_plugins.h"

using namespace plugrad::runtime;

namespace {

std::string origins(const RegistryOptions& options) {
  std::string out = options.selection + options.visible_devices;
  for (const SearchPlace& place : options.places) out += place.origin + ";";
  return out;
}

// A group of this user other than the process's; 0 if there is none.
gid_t other_group() {
  if (geteuid() == 0) return 65534;
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, getgroups(0, nullptr))));
  getgroups(static_cast<int>(groups.size()), groups.data());
  for (gid_t group : groups)
    if (group != getgid()) return group;
  return 0;
}

void name_everything() {
  for (const char* name : {"DEV", "PLUGRAD_PLUGIN_PATH", "PLUGRAD_VISIBLE_DEVICES",
                           "PLUGRAD_TRUST_PLUGINS", "XDG_DATA_HOME"})
    setenv(name, "/named", 1);
}

}  // namespace

// Runs in the copy. Exit status 0: the environment was ignored; 3: the copy has no privileges.
TEST(Elevated, DISABLED_SeesNothingOfTheEnvironment) {
  if (!getauxval(AT_SECURE)) _exit(3);
  const std::string seen = origins(options_from_settings());
  _exit(seen.find("PLUGRAD") == seen.npos && seen.find("user's") == seen.npos &&
                seen.find("/named") == seen.npos && plugrad::settings().trust_plugins.empty()
            ? 0
            : 1);
}

TEST(Elevated, TheEnvironmentIsIgnored) {
  gid_t group = other_group();
  if (group == 0) GTEST_SKIP() << "this user has one group alone";
  TemporaryDirectory directory;
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
  std::string copy = directory / "elevated";
  std::filesystem::copy_file("/proc/self/exe", copy);
  ASSERT_EQ(chown(copy.c_str(), static_cast<uid_t>(-1), group), 0);
  ASSERT_EQ(chmod(copy.c_str(), 02755), 0);
  pid_t child = fork();
  if (child == 0) {
    name_everything();
    execl(copy.c_str(), copy.c_str(), "--gtest_also_run_disabled_tests",
          "--gtest_filter=Elevated.DISABLED_*", "--gtest_brief=1", nullptr);
    _exit(4);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 3) GTEST_SKIP() << "this file system gives no privileges";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Elevated, WithoutPrivilegesTheEnvironmentCounts) {
  plugrad::SettingScope scope([](plugrad::Settings& s) { s.plugin_path = "/named"; });
  EXPECT_THAT(origins(options_from_settings()), testing::StartsWith("PLUGRAD_PLUGIN_PATH;"));
}
