// docs/sharding.md lists the rules of propagation. UPDATE_RULES=1 regenerates the table.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "sharding/propagation.h"

namespace plugrad {
namespace {

constexpr std::string_view kBegin = "<!-- rules of propagation -->\n",
                           kEnd = "<!-- end of the rules -->\n";

/// The ops of one meaning share a row, where the first of them stands.
std::string table() {
  std::vector<std::pair<std::string_view, std::string>> rows;
  for (const sharding::Rule& rule : sharding::propagation_rules()) {
    const auto known = std::ranges::find(rows, rule.meaning, &decltype(rows)::value_type::first);
    const std::string name = "`" + std::string(op_info(rule.op).name) + "`";
    if (known == rows.end())
      rows.emplace_back(rule.meaning, name);
    else
      known->second += ", " + name;
  }
  std::string text = "| ops | the result, and what moves |\n|---|---|\n";
  for (const auto& [meaning, ops] : rows)
    text += "| " + ops + " | " + std::string(meaning) + " |\n";
  return text;
}

TEST(PropagationDocument, ListsEveryRule) {
  const std::string path = std::string(PLUGRAD_SOURCE_DIR) + "/docs/sharding.md";
  std::stringstream file;
  file << std::ifstream(path).rdbuf();
  const std::string text = file.str();
  const size_t begin = text.find(kBegin), end = text.find(kEnd);
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos) << "no marks in " << path;
  const size_t first = begin + kBegin.size();
  if (std::getenv("UPDATE_RULES") != nullptr)
    std::ofstream(path) << text.substr(0, first) << table() << text.substr(end);
  else
    EXPECT_EQ(text.substr(first, end - first), table()) << "run tools/update-rules";
}

}  // namespace
}  // namespace plugrad
