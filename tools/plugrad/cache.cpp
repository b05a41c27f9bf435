// plugrad cache: what the disk cache of compiled kernels holds; clearing it.
#include <fmt/format.h>

#include "base/disk_cache.h"
#include "command.h"

namespace plugrad::tools {

int run_cache(const Arguments& arguments) {
  const std::string usage = "plugrad cache (stats|clear) [--json]";
  boost::program_options::options_description options("Options");
  options.add_options()("json", "one JSON document");
  Parsed parsed = parse(arguments, usage, options, "action");
  if (parsed.help) return kSuccess;
  auto words = parsed.get<std::vector<std::string>>("action");
  if (words.size() != 1 || (words[0] != "stats" && words[0] != "clear"))
    throw UsageError("say stats or clear\nusage: " + usage);

  DiskCache& cache = disk_cache();
  uint64_t removed = words[0] == "clear" ? cache.clear() : 0;
  DiskCache::Stats stats = cache.stats();
  if (parsed.has("json")) {
    print_json({{"directory", cache.directory()},
                {"entries", stats.entries},
                {"bytes", stats.bytes},
                {"removed", removed}},
               true);
  } else if (words[0] == "clear") {
    fmt::print("removed {} entries from {}\n", removed, cache.directory());
  } else {
    fmt::print("directory  {}\nentries    {}\nsize       {:.1f} MiB\n", cache.directory(),
               stats.entries, static_cast<double>(stats.bytes) / (1 << 20));
  }
  return kSuccess;
}

}  // namespace plugrad::tools
