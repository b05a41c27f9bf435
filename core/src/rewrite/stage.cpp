#include "rewrite/stage.h"

#include <map>
#include <optional>

#include "base/binding.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/trace/trace.h"
#include "rewrite/disabled.h"
#include "rewrite/rule.h"
#include "rewrite/stage_record.h"
#include "rewrite/trace.h"

namespace plugrad {
namespace {

// "rules: add-zero 2, mul-one 1"; empty when none applied.
std::string rules_line(const RewriteTrace& rewrites) {
  std::map<std::string_view, int> counts;
  for (const TraceEvent& event : rewrites.events) ++counts[event.rule->name];
  std::string text;
  for (const auto& [name, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "rules: " : ", ", name, count);
  return text.empty() ? text : text + "\n";
}

}  // namespace

const char* name_of(Form form) {
  switch (form) {
    case Form::TensorGraph:
      return "tensor graph";
    case Form::Plan:
      return "plan";
    case Form::KernelGraph:
      return "kernel graph";
    default:
      return "kernel IR";
  }
}

bool are_stages_observed() {
  return tracing_rules() || debugging(4) || settings().verify || !settings().dump.empty();
}

uint32_t new_run() {
  return tracing_rules() ? trace::new_id() : 0;
}

bool is_left_out(const char* stage, bool is_optional) {
  if (!is_disabled(stage)) return false;
  require(is_optional, "[disable] the stage \"{}\" in PLUGRAD_DISABLE must run", stage);
  return true;
}

void run_stage(const StageRun& stage) {
  if (is_left_out(stage.stage.name, stage.stage.is_optional)) return;
  poll_interruption();
  const bool dumps = debugging(4) || settings().dump == stage.stage.name;
  const uint64_t start = tracing() ? monotonic_ns() : 0;
  std::optional<StageRecord> record;
  if (stage.run != 0) record.emplace(stage);
  RewriteTrace rewrites;
  rewrites.observer = record ? &*record : nullptr;
  {
    std::optional<TraceScope> scope;
    if (dumps || record) scope.emplace(rewrites);
    stage.run_it();
  }
  if (start != 0)
    trace::span(trace::Category::Stage, stage.stage.name, start, rewrites.events.size());
  if (record) record->finish();
  if (settings().verify) stage.verify();
  if (dumps)
    debug_write(fmt::format("--- {}: {} ({})\n{}\n{}", stage.category, stage.stage.name,
                            stage.stage.meaning, stage.text(), rules_line(rewrites)));
}

}  // namespace plugrad
