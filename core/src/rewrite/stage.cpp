#include "rewrite/stage.h"

#include <map>
#include <optional>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/trace.h"
#include "rewrite/disabled.h"
#include "rewrite/rule.h"
#include "rewrite/trace.h"

namespace plugrad {
namespace {

void record(const StageRun& stage, uint64_t start_ns, const RewriteTrace& rewrites) {
  trace_span(stage.category, stage.stage.name, start_ns,
             {{"meaning", std::string_view(stage.stage.meaning)},
              {"rewrites", static_cast<int64_t>(rewrites.events.size())}});
  for (const TraceEvent& event : rewrites.events)
    trace_instant("rewrite", "rule",
                  {{"stage", std::string_view(stage.stage.name)},
                   {"rule", std::string_view(event.rule->name)},
                   {"file", std::string_view(event.rule->file)},
                   {"line", int64_t{event.rule->line}},
                   {"from", int64_t{event.from}},
                   {"to", int64_t{event.to}}});
}

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

bool is_left_out(const char* stage, bool is_optional) {
  if (!is_disabled(stage)) return false;
  require(is_optional, "[disable] the stage \"{}\" in PLUGRAD_DISABLE must run", stage);
  return true;
}

void run_stage(const StageRun& stage) {
  if (is_left_out(stage.stage.name, stage.stage.is_optional)) return;
  const bool dumps = debugging(4) || settings().dump == stage.stage.name;
  const uint64_t start = monotonic_ns();
  RewriteTrace rewrites;
  {
    std::optional<TraceScope> scope;
    if (dumps || tracing()) scope.emplace(rewrites);
    stage.run();
  }
  if (tracing()) record(stage, start, rewrites);
  if (settings().verify) stage.verify();
  if (dumps)
    debug_write(fmt::format("--- {}: {} ({})\n{}\n{}", stage.category, stage.stage.name,
                            stage.stage.meaning, stage.text(), rules_line(rewrites)));
}

}  // namespace plugrad
