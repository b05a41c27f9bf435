#include "runtime/discovery/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugrad/error.h"

using namespace plugrad::runtime;

namespace {

std::string printed(const DeviceChoice& c) {
  std::string out = c.plugin.empty() ? "*" : c.plugin;
  if (c.index) out += ":" + std::to_string(*c.index);
  if (!c.name_glob.empty()) out += ":name=" + c.name_glob;
  if (!c.uuid_glob.empty()) out += ":uuid=" + c.uuid_glob;
  return out;
}

std::string printed(std::string_view text) {
  Selection s = parse_selection(text, "DEV");
  std::string out;
  for (const DeviceChoice& c : s.prefer) out += printed(c) + " ";
  for (const DeviceChoice& c : s.exclude) out += "!" + printed(c) + " ";
  return out;
}

std::string refusal(std::string_view text) {
  try {
    parse_selection(text, "DEV");
  } catch (const plugrad::Error& e) {
    EXPECT_EQ(e.kind(), plugrad::ErrorKind::User);
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST(Selection, TheGrammarByExample) {
  EXPECT_EQ(printed("cuda:1"), "CUDA:1 ");
  EXPECT_EQ(printed("cuda,vulkan,cpu"), "CUDA VULKAN CPU ");
  EXPECT_EQ(printed(" cuda : 1 , ! vulkan "), "CUDA:1 !VULKAN ");
  EXPECT_EQ(printed("!vulkan,!cuda:0"), "!VULKAN !CUDA:0 ");
  EXPECT_EQ(printed("cuda:name=*A100*"), "CUDA:name=*A100* ");
  EXPECT_EQ(printed("uuid=GPU-4f:1*"), "*:uuid=GPU-4f:1* ");
  EXPECT_EQ(printed("name=*Xeon*,cpu"), "*:name=*Xeon* CPU ");
  EXPECT_EQ(printed("1"), "*:1 ");
  EXPECT_EQ(printed("clang,gpu:2,Acme_2"), "CPU OPENCL:2 ACME_2 ");
}

TEST(Selection, ErrorsPointAtTheirPlace) {
  EXPECT_THAT(refusal("cuda:x"),
              testing::StartsWith("\"x\" is neither a number, name=... nor uuid=... in DEV\n"
                                  "       cuda:x\n"
                                  "            ^ DEV takes a list such as"));
  EXPECT_THAT(refusal("cpu,,cuda"),
              testing::StartsWith("an empty item in DEV\n       cpu,,cuda\n           ^"));
  EXPECT_THAT(refusal("c*da"), testing::HasSubstr("\n       c*da\n       ^~~~ "));
  for (const char* bad :
       {"", "cpu,", ",", "!", "cuda:", ":1", "cuda:-1", "cuda:99999999999", "cuda:1:2",
        "name=", "cuda:uuid=", "cu da", "cuda:1x", "!!cuda", "/dev/x"})
    EXPECT_NE(refusal(bad), "accepted") << bad;
}

TEST(Selection, WhatCannotBePrintedOrLooksLikeAnotherCharacterIsEscaped) {
  EXPECT_THAT(refusal(std::string_view("c\0\n\x1b[2J\xff", 8)),
              testing::StartsWith("\"c<U+0000><U+000A><U+001B>[2J<0xFF>\" cannot be a device's name"
                                  " in DEV\n"
                                  "       c<U+0000><U+000A><U+001B>[2J<0xFF>\n"
                                  "       ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~ "));
  EXPECT_THAT(refusal("cpu,С\u200bPU"),
              testing::StartsWith("\"<U+0421><U+200B>PU\" cannot be a device's name in DEV\n"
                                  "       cpu,<U+0421><U+200B>PU\n"
                                  "           ^~~~~~~~~~~~~~~~~~ "));
}

TEST(Selection, ALongValueIsShownOnceAndInPart) {
  const std::string many(100'000, '-');
  EXPECT_THAT(refusal("cpu," + many + ",cuda"),
              testing::StartsWith("a text of 100000 bytes cannot be a device's name in DEV\n"
                                  "       cpu," +
                                  many.substr(0, 64) + "...\n"));
  std::string list = "cpu";
  for (int i = 0; i < 10'000; ++i) list += ",cuda";
  const std::string said = refusal(list + ",c*da" + list);
  EXPECT_LT(said.size(), 500u);
  EXPECT_THAT(said, testing::HasSubstr("a,cuda,c*dacpu,cuda"));
}

TEST(Selection, Globs) {
  EXPECT_TRUE(matches_glob("NVIDIA A100-SXM4", "*a100*"));
  EXPECT_TRUE(matches_glob("abc", "a?c"));
  EXPECT_TRUE(matches_glob("", "*"));
  EXPECT_TRUE(matches_glob("aXbXc", "*X*c"));
  EXPECT_FALSE(matches_glob("abc", "a?"));
  EXPECT_FALSE(matches_glob("abc", "b*"));
}
