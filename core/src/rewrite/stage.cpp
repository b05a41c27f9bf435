#include "rewrite/stage.h"

#include <optional>

#include "base/clock.h"
#include "base/log.h"
#include "base/trace.h"
#include "rewrite/rule.h"
#include "rewrite/trace.h"

namespace plugrad {

void run_stage(const StageRun& stage) {
  const uint64_t start = monotonic_ns();
  if (tracing()) {
    RewriteTrace rewrites;
    {
      TraceScope scope(rewrites);
      stage.run();
    }
    trace_span(stage.category, stage.name, start,
               {{"rewrites", static_cast<int64_t>(rewrites.events.size())}});
    for (const TraceEvent& event : rewrites.events)
      trace_instant(stage.category, event.rule->name,
                    {{"stage", std::string_view(stage.name)},
                     {"rule", std::string_view(event.rule->name)},
                     {"file", std::string_view(event.rule->file)},
                     {"line", int64_t{event.rule->line}},
                     {"from", int64_t{event.from}},
                     {"to", int64_t{event.to}}});
  } else {
    stage.run();
  }
  if (settings().verify && stage.verify) stage.verify();
  if (debugging(4) || settings().dump == stage.name)
    debug_write(fmt::format("-- {}: {}\n{}\n", stage.category, stage.name, stage.text()));
}

}  // namespace plugrad
