// PLUGRAD_DISABLE: its names, and what they switch off.
#include "engine/disabled_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugrad/error.h"
#include "rewrite/disabled.h"
#include "rewrite/rewrite.h"
#include "rewrite/stage.h"
#include "symbolic/rules/tables.h"

using namespace plugrad;
using namespace plugrad::engine;
using testing::Contains;
using testing::HasSubstr;

namespace {

std::string error_of(const char* disabled) {
  try {
    require_known_names(disabled);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

SettingScope without(const char* names) {
  return SettingScope{[names](Settings& s) { s.disable = names; }};
}

}  // namespace

TEST(DisabledNames, RulesAndOptionalStagesAreKnown) {
  EXPECT_THAT(rule_names(), Contains("add-zero"));
  EXPECT_THAT(simplifying_rules(), Contains("add-zero"));
  EXPECT_THAT(optional_stages(), Contains("partition loops"));
  EXPECT_EQ(error_of(""), "");
  EXPECT_EQ(error_of("add-zero, partition loops"), "");
}

TEST(DisabledNames, AnUnknownNameIsAnErrorThatNamesTheNearest) {
  EXPECT_THAT(error_of("add-zerro"), HasSubstr("did you mean add-zero?"));
  EXPECT_THAT(error_of("partition loop"), HasSubstr("did you mean partition loops?"));
  EXPECT_THAT(error_of("encode"), HasSubstr("no rule and no stage that may be left out"));
  EXPECT_NE(error_of("add-zero,"), "");
}

TEST(DisabledNames, ARuleThatIsListedDoesNotApply) {
  Graph g;
  const Id seven = g.index(7), sum = g.binary(Op::Add, seven, g.index(0));
  const RuleTable table(identity_rules());
  EXPECT_EQ(rewrite(g, sum, table), seven);
  const auto scope = without("add-zero");
  EXPECT_EQ(rewrite(g, sum, table), sum);
}

TEST(DisabledNames, OnlyOptionalStagesAreLeftOut) {
  const auto scope = without("one, two");
  EXPECT_TRUE(is_left_out("two", true));
  EXPECT_FALSE(is_left_out("three", true));
  EXPECT_THROW(is_left_out("one", false), Error);
}
