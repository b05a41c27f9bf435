// plugrad cache: lists and clears the disk cache of compiled kernels.
#include <fmt/format.h>

#include "base/storage/disk_cache.h"
#include "command.h"

namespace plugrad::tools {

Syntax cache_syntax() {
  Syntax syntax{.usage = "plugrad cache (stats|clear) [--json]",
                .words = "action",
                .choices = {{"action", {"stats", "clear"}}}};
  syntax.options.add_options()("json", "one JSON document");
  return syntax;
}

int run_cache(const Arguments& arguments) {
  const Syntax syntax = cache_syntax();
  const Parsed parsed = parse(arguments, syntax);
  if (parsed.help) return kSuccess;
  const auto words = parsed.get<Arguments>("action");
  if (words.size() != 1) throw UsageError("say stats or clear\nusage: " + syntax.usage);
  require_choice("action", words[0], syntax.choices.at("action"), syntax.usage);

  DiskCache& cache = disk_cache();
  uint64_t removed = words[0] == "clear" ? cache.clear() : 0;
  DiskCache::Stats stats = cache.stats();
  if (parsed.has("json")) {
    print_json({{"directory", cache.directory()},
                {"entries", stats.entries},
                {"bytes", stats.bytes},
                {"removed", removed}});
  } else if (words[0] == "clear") {
    fmt::print("removed {} entries from {}\n", removed, cache.directory());
  } else {
    fmt::print("directory  {}\nentries    {}\nsize       {:.1f} MiB\n", cache.directory(),
               stats.entries, static_cast<double>(stats.bytes) / (1 << 20));
  }
  return kSuccess;
}

}  // namespace plugrad::tools
