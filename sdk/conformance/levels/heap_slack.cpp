#include "conformance/levels/heap_slack.h"

#include <link.h>
#include <sys/stat.h>

#include <cstring>
#include <set>
#include <string>

namespace plugrad::conformance {
namespace {

std::set<std::string> loaded_libraries() {
  std::set<std::string> paths;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        if (info->dlpi_name && info->dlpi_name[0] == '/')
          static_cast<std::set<std::string>*>(out)->insert(info->dlpi_name);
        return 0;
      },
      &paths);
  return paths;
}

// Before a plugin is opened.
const std::set<std::string> libraries_of_the_suite = loaded_libraries();

// Kernels that were compiled just now may be libraries too.
bool is_installed(const std::string& path) {
  struct stat file{}, own{};
  return ::stat(path.c_str(), &file) == 0 && ::stat("/proc/self", &own) == 0 &&
         file.st_mtime < own.st_mtime;
}

bool has_driver() {
  for (const std::string& path : loaded_libraries())
    if (!libraries_of_the_suite.contains(path) && path.find("libplugrad_") == path.npos &&
        is_installed(path))
      return true;
  return false;
}

}  // namespace

uint64_t heap_slack_a_round() {
  return has_driver() ? 256 : 8;
}

}  // namespace plugrad::conformance
