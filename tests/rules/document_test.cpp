// docs/rules.md lists the rules of all tables. UPDATE_RULES=1 regenerates it.
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

All rewrite rules, one table for each file. The driver in `core/src/rewrite` applies them. To see
the rules that a kernel's stages applied, set `DEBUG=4` or `VIZ=1`. After a change of a
rule, run `tools/update-rules` to regenerate this page; a test compares it with the tables.

- `x`, `y`, `z`, `w`, `u` and `v` match any node, `c0` to `c3` match constants; a name that occurs
  twice matches the same node.
- `[f32]` before a pattern restricts its dtype.
- `/` and `%` are floor division and modulus.
- `op(…)` matches a node with any sources, `(a|b)(…)` a node of either op.
- A single name under "after" or "condition" is a C++ function in the table's file.
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
      {"Selections (where)", all(where_rules())},
      {"Casts", all(cast_rules())},
      {"Comparisons", all(compare_rules())},
      {"Float identities", all(float_rules())},
      {"Associativity", all(associativity_rules())},
      {"Index arithmetic", all(index_rules())},
      {"Conditions of memory accesses", all(validity_rules())},
      {"Reductions", all(reduce_rules())},
      {"Reductions in closed form", all(collapse_rules())},
      {"Fast math (opt-in)", all(fast_rules())},
      {"Derivatives: the gradient of each source; u is the gradient of the node, v its value",
       all(autodiff::derivative_table())},
      {"Views", all(schedule::view_rules())},
      {"Expansion of vector and unrolled ranges", all(expansion_rules())},
      {"Dynamic loop bounds", all(dynamic_bound_rules())},
      {"Bound tightening: loops skip terms that are 0", all(loop_bound_rules())},
      {"Reductions over work-items", all(closing_rules())},
      {"Marks of values for compute_at", all(keep_mark_rules())},
      {"Software pipelining", all(pipelining_rules())},
      {"Predication: loads", all(predication_rules())},
      {"Predication: copies of a workgroup", all(copy_predication_rules())},
      {"Floor division on truncating machine division", all(index_lowering_rules())},
      {"Decomposition: memory accesses", all(memory_rules())},
      {"Decomposition: bool", all(bool_rules())},
      {"Decomposition: arithmetic below 32 bits", all(narrow_rules())},
      {"Decomposition: u32 on i32", all(u32_rules())},
      {"Decomposition: casts of small floats", all(small_float_rules())},
      {"Decomposition: casts of small integers", all(small_integer_rules())},
      {"Decomposition: basic ops", all(basic_rules())},
      {"Decomposition: division", all(division_rules())},
      {"Decomposition: exponentials, logarithms, powers", all(exponential_rules())},
      {"Decomposition: trigonometric functions", all(trigonometric_rules())},
  };
}

// Escapes bars, which would end a cell.
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
  EXPECT_TRUE(file.str() == text)
      << "docs/rules.md differs from the tables; run tools/update-rules";
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
