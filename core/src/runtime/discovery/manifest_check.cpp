// Checks a parsed manifest against this host: versions, sanitizers, probes.
#include <fmt/format.h>

#include <algorithm>

#include "plugrad/plugin_api/plugin.h"
#include "runtime/discovery/manifest.h"
#include "runtime/discovery/path_pattern.h"

namespace plugrad::runtime {
namespace {

std::string host_sanitizer() {
#if defined(__SANITIZE_ADDRESS__)
  return "address";
#elif defined(__SANITIZE_THREAD__)
  return "thread";
#else
  return "";
#endif
}

}  // namespace

std::string major_refusal(std::uint32_t major, std::string& hint) {
  hint = major == 0 ? "build it anew with the headers of plugin_api 1.0"
                    : "install a plugin that was built for this version of plugrad";
  return fmt::format("it is built for plugin ABI {}; this host speaks {}.{}",
                     major == 0 ? "0.9, a preview of 1.0" : fmt::format("{}.x", major),
                     PGR_API_MAJOR, PGR_API_MINOR);
}

std::string manifest_refusal(const Manifest& m, std::string& hint) {
  if (m.abi_major != PGR_API_MAJOR) return major_refusal(m.abi_major, hint);
  if (m.abi_minor_low > PGR_API_MINOR) {
    hint = fmt::format("install a plugrad that speaks plugin ABI {}.{} or later", m.abi_major,
                       m.abi_minor_low);
    return fmt::format("it needs a newer host: plugin ABI {}.{}; this host speaks {}.{}",
                       m.abi_major, m.abi_minor_low, PGR_API_MAJOR, PGR_API_MINOR);
  }
  // A library built with a sanitizer ends a host without it inside dlopen.
  for (const char* kind : {"address", "thread", "memory"}) {
    bool plugin_has = m.sanitizer.find(kind) != std::string::npos;
    if (plugin_has && host_sanitizer() != kind) {
      hint = "build plugin and host with the same sanitizers";
      return fmt::format("it is built with the sanitizer \"{}\", this host with \"{}\"",
                         m.sanitizer, host_sanitizer());
    }
  }
  return "";
}

bool probes_pass(const std::vector<std::string>& paths) {
  return paths.empty() || std::ranges::any_of(paths, path_pattern_exists);
}

}  // namespace plugrad::runtime
