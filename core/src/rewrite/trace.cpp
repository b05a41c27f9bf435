#include "rewrite/trace.h"

#include <fmt/format.h>

#include <string_view>

namespace plugrad {
namespace {
thread_local RewriteTrace* open_trace = nullptr;
}  // namespace

TraceScope::TraceScope(RewriteTrace& trace) : outer_(open_trace) {
  open_trace = &trace;
}
TraceScope::~TraceScope() {
  open_trace = outer_;
}
RewriteTrace* current_trace() {
  return open_trace;
}

std::string to_string(const TraceEvent& event) {
  std::string_view file = event.rule->file;
  if (const size_t slash = file.rfind('/'); slash != file.npos) file.remove_prefix(slash + 1);
  return fmt::format("{} ({}:{}): %{} -> %{}", event.rule->name, file, event.rule->line, event.from,
                     event.to);
}

}  // namespace plugrad
