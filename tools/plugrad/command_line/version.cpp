#include "command_line/version.h"

#include <fmt/format.h>

#include "plugrad/plugin_api/plugin.h"

namespace plugrad::tools {
namespace {

std::string compiler() {
#ifdef __clang__
  return fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

}  // namespace

const char* version() {
  return PLUGRAD_VERSION;
}

int print_version(const Arguments& arguments) {
  const bool json = arguments == Arguments{"--json"};
  if (!json && !arguments.empty())
    throw UsageError(
        fmt::format("--version takes no {}\nusage: plugrad --version [--json]", arguments[0]));
  const std::string abi = fmt::format("{}.{}", PGR_API_MAJOR, PGR_API_MINOR);
  if (json)
    print_json({{"version", version()},
                {"abi", abi},
                {"build", PLUGRAD_BUILD},
                {"compiler", compiler()},
                {"arch", PLUGRAD_ARCH}});
  else
    fmt::print("plugrad {}\nplugin ABI {}\nbuild {}, {}, {}\n", version(), abi, PLUGRAD_BUILD,
               compiler(), PLUGRAD_ARCH);
  return kSuccess;
}

}  // namespace plugrad::tools
