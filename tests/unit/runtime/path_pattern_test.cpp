// Path patterns of manifests: matches, and bounded matching time.
#include "runtime/discovery/path_pattern.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "unit/base/temporary_directory.h"

namespace plugrad::runtime {
namespace {

TEST(PathPattern, NamesMatchAsInAShell) {
  EXPECT_TRUE(matches_name("renderD128", "renderD*"));
  EXPECT_TRUE(matches_name("acme12", "ac?e[0-9][!0]"));
  EXPECT_FALSE(matches_name("acme10", "ac?e[0-9][!0]"));
  EXPECT_TRUE(matches_name("a]b", "a[]x]b"));
  EXPECT_TRUE(matches_name("a[b", "a[b"));
  EXPECT_TRUE(matches_name("abcabd", "*ab*d*"));
  EXPECT_FALSE(matches_name("abc", "abc?"));
  EXPECT_FALSE(matches_name(".hidden", "*"));
  EXPECT_TRUE(matches_name(".hidden", ".h*"));
  EXPECT_FALSE(matches_name("Acme", "acme"));
}

TEST(PathPattern, FilesAreFound) {
  TemporaryDirectory d;
  std::filesystem::create_directories(d / "one/two");
  std::ofstream(d / "one/two/acme0") << "x";
  EXPECT_TRUE(path_pattern_exists(d / "one/two/acme0"));
  EXPECT_TRUE(path_pattern_exists(d / "o*/t?o/acme[0-9]"));
  EXPECT_TRUE(path_pattern_exists(d / "*"));
  EXPECT_FALSE(path_pattern_exists(d / "o*/t?o/acme[1-9]"));
  EXPECT_FALSE(path_pattern_exists(d / "one/two/acme0/*"));
  EXPECT_FALSE(path_pattern_exists("dev/null"));
  EXPECT_FALSE(path_pattern_exists(""));
}

TEST(PathPattern, ManyStarsTakeNoLongTime) {
  const auto start = std::chrono::steady_clock::now();
  const std::string name(250, 'a');
  std::string stars;
  for (int i = 0; i < 40; ++i) stars += "a*";
  EXPECT_FALSE(matches_name(name, stars + "b"));
  EXPECT_FALSE(path_pattern_exists("/*/*/*/*/*/*/no-such-name-*"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
}

}  // namespace
}  // namespace plugrad::runtime
