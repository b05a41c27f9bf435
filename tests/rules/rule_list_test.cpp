#include <gtest/gtest.h>

#include <set>
#include <string>

#include "symbolic/rules/tables.h"

namespace plugrad {
namespace {

TEST(RuleList, NamesAreUnique) {
  const RuleTable table = table_of(RuleSet::Fast, {collapse_rules()});
  std::set<std::string> names;
  for (uint32_t i = 0; i < table.size(); ++i)
    EXPECT_TRUE(names.insert(table[i].name).second) << table[i].name;
  EXPECT_GT(names.size(), 100u);
}

}  // namespace
}  // namespace plugrad
