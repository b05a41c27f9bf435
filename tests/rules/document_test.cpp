// docs/rules.md lists every rule as in its table. UPDATE_RULES=1 rewrites the page.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "autodiff/rules.h"
#include "codegen/lowering/lowering.h"
#include "codegen/passes/passes.h"
#include "rewrite/print_rule.h"
#include "schedule/tensor_builder.h"
#include "symbolic/rules/tables.h"

namespace plugrad {
namespace {

constexpr const char* kHead = R"(# Rules

Every rewrite of a graph is a row of a table, applied by the driver of `core/src/rewrite`. This
page is written by `tools/update-rules` from the tables; a test fails when it differs from them.

`x` to `v` stand for any node, `c0` to `c3` for constants, and the same name twice for the same
node. `[f32]` before a pattern says which dtypes it matches. `/` and `%` are floor division and
modulus. `op(…)` is a node with any sources, `(a|b)(…)` a node of either op. A name alone under
"after" or in a condition is a function of the table's file. `PLUGRAD_TRACE` and `DEBUG=4` name
the rules that applied in each stage.
)";

struct Table {
  const char* title;
  std::vector<const Rule*> rules;
};

std::vector<const Rule*> all(std::span<const Rule> rules) {
  std::vector<const Rule*> out;
  for (const Rule& rule : rules) out.push_back(&rule);
  return out;
}

std::vector<const Rule*> all(const RuleTable& table) {
  std::vector<const Rule*> out;
  for (uint32_t i = 0; i < table.size(); ++i) out.push_back(&table[i]);
  return out;
}

std::vector<Table> tables() {
  using namespace codegen;
  return {
      {"Constants", all(constant_rules())},
      {"Identities", all(identity_rules())},
      {"Booleans", all(boolean_rules())},
      {"Choices", all(where_rules())},
      {"Casts", all(cast_rules())},
      {"Comparisons", all(compare_rules())},
      {"Floats", all(float_rules())},
      {"Associativity", all(associativity_rules())},
      {"Index arithmetic", all(index_rules())},
      {"Validity of accesses", all(validity_rules())},
      {"Reductions", all(reduce_rules())},
      {"Reductions in closed form", all(collapse_rules())},
      {"The fast set (opt-in)", all(fast_rules())},
      {"Derivatives: what flows to each source, of u, what flows in, and v, the node's value",
       all(autodiff::derivative_table())},
      {"Views of tensors", all(schedule::view_rules())},
      {"Expansion of ranges", all(expansion_rules())},
      {"Dynamic loop bounds", all(dynamic_bound_rules())},
      {"Bound tightening", all(loop_bound_rules())},
      {"Reductions over work-items", all(closing_rules())},
      {"compute_at marks", all(keep_mark_rules())},
      {"Software pipelining", all(pipelining_rules())},
      {"Predication: loads", all(predication_rules())},
      {"Predication: copies into local memory", all(copy_predication_rules())},
      {"Floor division of machine integers", all(index_lowering_rules())},
      {"What a device lacks: memory", all(memory_rules())},
      {"What a device lacks: bool", all(bool_rules())},
      {"What a device lacks: floats and integers below 32 bits", all(narrow_rules())},
      {"What a device lacks: u32", all(u32_rules())},
      {"What a device lacks: casts of small floats", all(small_float_rules())},
      {"What a device lacks: casts of small integers", all(small_integer_rules())},
      {"What a device lacks: basic ops", all(basic_rules())},
      {"What a device lacks: division", all(division_rules())},
      {"What a device lacks: transcendental functions", all(transcendental_rules())},
  };
}

// A bar would end the cell.
std::string code(const std::string& text) {
  if (text.empty()) return "";
  std::string out = "`";
  for (char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out + "`";
}

std::string document() {
  std::string text = kHead;
  for (const Table& table : tables()) {
    text += "\n## " + std::string(table.title) + "\n\n";
    text += "`core/src/" + source_file(*table.rules[0]) + "`\n\n";
    text += "| rule | before | after | condition |\n|---|---|---|---|\n";
    for (const Rule* rule : table.rules)
      text += "| " + std::string(rule->name) + " | " + code(to_string(rule->left)) + " | " +
              code(right_side(*rule)) + " | " + code(condition(*rule)) + " |\n";
  }
  return text;
}

TEST(RulesDocument, ListsEveryRule) {
  const std::string path = std::string(PLUGRAD_SOURCE_DIR) + "/docs/rules.md";
  const std::string text = document();
  if (std::getenv("UPDATE_RULES") != nullptr) std::ofstream(path) << text;
  std::stringstream file;
  file << std::ifstream(path).rdbuf();
  EXPECT_TRUE(file.str() == text) << "docs/rules.md is not what the tables say; run "
                                     "tools/update-rules";
}

TEST(RulesDocument, NamesAreUnique) {
  std::vector<std::string> names;
  for (const Table& table : tables())
    for (const Rule* rule : table.rules) names.push_back(rule->name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  EXPECT_EQ(twice, names.end()) << *twice;
}

}  // namespace
}  // namespace plugrad
