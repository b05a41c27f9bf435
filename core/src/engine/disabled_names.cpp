#include "engine/disabled_names.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "codegen/codegen.h"
#include "codegen/lowering/lowering.h"
#include "codegen/passes/passes.h"
#include "rewrite/disabled.h"
#include "schedule/schedule.h"
#include "schedule/tensor_builder.h"
#include "symbolic/rules/tables.h"

namespace plugrad::engine {
namespace {

void append_names(std::vector<std::string>& out, std::span<const Rule> rules) {
  for (const Rule& rule : rules) out.emplace_back(rule.name);
}
template <class... Tables>
void add_all(std::vector<std::string>& out, const Tables&... tables) {
  (append_names(out, tables), ...);
}

}  // namespace

std::vector<std::string> simplifying_rules() {
  std::vector<std::string> out;
  add_all(out, constant_rules(), identity_rules(), boolean_rules(), where_rules(), cast_rules(),
          compare_rules(), float_rules(), associativity_rules(), index_rules(), validity_rules(),
          reduce_rules(), collapse_rules(), fast_rules());
  std::ranges::sort(out);
  return out;
}

// The tables of docs/rules.md, without the derivatives.
std::vector<std::string> rule_names() {
  using namespace codegen;
  std::vector<std::string> out = simplifying_rules();
  add_all(out, schedule::view_rules());
  add_all(out, expansion_rules(), dynamic_bound_rules(), loop_bound_rules(), closing_rules(),
          keep_mark_rules(), pipelining_rules(), predication_rules(), copy_predication_rules(),
          index_lowering_rules(), memory_rules(), bool_rules(), narrow_rules(), u32_rules(),
          small_float_rules(), small_integer_rules(), basic_rules(), division_rules(),
          exponential_rules(), trigonometric_rules());
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<std::string> optional_stages() {
  std::vector<std::string> out;
  for (const auto& rows : {schedule::stages(), codegen::stages()})
    for (const StageInfo& row : rows)
      if (row.is_optional) out.emplace_back(row.name);
  return out;
}

void require_known_names(std::string_view disabled) {
  if (disabled.empty()) return;
  const std::vector<std::string> stages = optional_stages();
  std::vector<std::string> known = rule_names();
  known.insert(known.end(), stages.begin(), stages.end());
  for (const std::string_view name : names_of(disabled)) {
    if (name.starts_with(kDerivativePrefix)) continue;
    if (std::ranges::find(known, name) != known.end()) continue;
    const std::string nearest = nearest_name(name, known);
    fail(ErrorKind::User,
         "[disable] \"{}\" in PLUGRAD_DISABLE is no rule and no stage that may be left out{}; "
         "docs/rules.md lists the rules, the stages are: {}",
         name, nearest.empty() ? "" : "; did you mean " + nearest + "?", fmt::join(stages, ", "));
  }
}

}  // namespace plugrad::engine
