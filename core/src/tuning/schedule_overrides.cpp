// Parses "name: schedule; name: schedule", or one schedule for all kernels.
#include "tuning/schedule_overrides.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "base/check.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/text.h"
#include "codegen/search/search.h"

namespace plugrad::tuning {
namespace {

using codegen::KernelSchedule;

struct GivenList {
  std::string_view kernel;  // empty: all kernels
  KernelSchedule list;
};

GivenList parse_entry(std::string_view entry) {
  const size_t colon = entry.find(':');
  if (colon == entry.npos) return {{}, codegen::parse_schedule(entry)};
  const std::string_view kernel = trimmed(entry.substr(0, colon));
  require(!kernel.empty(), "[optimisations] no kernel is named before the ':' of \"{}\"", entry);
  return {kernel, codegen::parse_schedule(entry.substr(colon + 1))};
}

std::vector<GivenList> parse_lists(std::string_view text) {
  std::vector<GivenList> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    const std::string_view entry = trimmed(text.substr(0, end));
    if (!entry.empty()) out.push_back(parse_entry(entry));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// The use of each override text in this process; never destroyed.
struct Use {
  std::set<std::string, std::less<>> kernels;  // names of the kernels made
  size_t scopes = 0;                           // scopes now using it, which warn themselves
  bool is_of_process = false;                  // also set outside scopes: checked at exit
};
struct Uses {
  std::mutex mutex;
  std::map<std::string, Use, std::less<>> by_text;
};
Uses& uses() {
  static auto* all = new Uses;
  return *all;
}

void warn_of_unused(std::string_view text, const Use& use) {
  std::set<std::string_view> unused;
  for (const GivenList& given : parse_lists(text))
    if (!given.kernel.empty() && !use.kernels.contains(given.kernel)) unused.insert(given.kernel);
  if (unused.empty()) return;
  constexpr size_t kShown = 8;
  std::string made;
  size_t shown = 0;
  for (const std::string& name : use.kernels)
    if (++shown <= kShown) made += (made.empty() ? "" : ", ") + name;
  if (shown > kShown) made += fmt::format(" and {} others", shown - kShown);
  log_warning(
      "[optimisations] lists were given for kernels that were not made: {}. {}; the names are "
      "those "
      "of Tensor::kernelize() and of DEBUG=3, and kernels that are there already keep their lists",
      fmt::join(unused, ", "), made.empty() ? "None were made" : "Made were " + made);
}

void warn_at_exit() {
  Uses& all = uses();
  const std::lock_guard lock(all.mutex);
  for (const auto& [text, use] : all.by_text) try {
      if (use.is_of_process) warn_of_unused(text, use);
    } catch (const Error& e) {  // no kernel was made, so no error was reported before
      log_warning("{}", e.what());
    }
}

/// The use of a text set by a scope or the environment. Requires the lock.
Use& noted(Uses& all, std::string_view text) {
  static std::once_flag once;
  Use& use = all.by_text[std::string(text)];
  if (use.scopes > 0) return use;
  use.is_of_process = true;
  std::call_once(once, [] {
    std::atexit(warn_at_exit);
    std::at_quick_exit(warn_at_exit);
  });
  return use;
}

}  // namespace

void check_overrides_at_exit() {
  if (settings().optimisations.empty()) return;
  Uses& all = uses();
  const std::lock_guard lock(all.mutex);
  noted(all, settings().optimisations);
}

void begin_overrides(std::string_view text) {
  parse_lists(text);
  Uses& all = uses();
  const std::lock_guard lock(all.mutex);
  ++all.by_text[std::string(text)].scopes;
}

void end_overrides(std::string_view text, bool is_done) {
  Uses& all = uses();
  const std::lock_guard lock(all.mutex);
  Use& use = all.by_text[std::string(text)];
  --use.scopes;
  if (is_done) warn_of_unused(text, use);
}

std::optional<KernelSchedule> schedule_override(const KernelAst& ast, runtime::Device& device,
                                                codegen::Options options) {
  if (settings().optimisations.empty()) return std::nullopt;
  const std::string planned = codegen::describe(ast.graph, ast.sink).name;
  const std::string_view name = options.name.empty() ? std::string_view(planned) : options.name;
  {
    Uses& all = uses();
    const std::lock_guard lock(all.mutex);
    noted(all, settings().optimisations).kernels.emplace(name);
  }
  std::optional<KernelSchedule> found;  // a named entry takes precedence over one for all kernels
  bool is_named = false;
  for (GivenList& given : parse_lists(settings().optimisations)) {
    if (!given.kernel.empty() && given.kernel != name) continue;
    if (given.kernel.empty() && is_named) continue;
    is_named = !given.kernel.empty();
    found = std::move(given.list);
  }
  if (!found) return std::nullopt;
  options.no_opt = false;  // an override of this kernel takes precedence over NOOPT=1
  try {
    codegen::SearchSpace(ast.graph, ast.sink, device.caps(), options).require_legal(*found);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::User) throw;
    fail(ErrorKind::User, "[optimisations] the list \"{}\" is not legal for {} on {}: {}",
         codegen::to_string(*found), name, device.name(), e.what());
  }
  if (debugging(1))
    debug_write(fmt::format("{} on {} gets the list given to it: {}\n", name, device.name(),
                            codegen::to_string(*found)));
  return found;
}

}  // namespace plugrad::tuning
