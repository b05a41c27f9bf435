#include "conformance/levels/heap_slack.h"

#include <link.h>
#include <sys/stat.h>

#include <string>

namespace plugrad::conformance {
namespace {

// Calls `visit` with the path of each loaded library, in load order.
template <class Visit>
void each_library(Visit visit) {
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        (*static_cast<Visit*>(out))(info->dlpi_name ? info->dlpi_name : "");
        return 0;
      },
      &visit);
}

size_t count_libraries() {
  size_t count = 0;
  each_library([&](const char*) { ++count; });
  return count;
}

// Libraries of the suite, counted before a plugin is opened. They are never unloaded.
const size_t libraries_of_the_suite = count_libraries();

// Freshly compiled kernels may be libraries too.
bool is_installed(const std::string& path) {
  struct stat file{}, own{};
  return ::stat(path.c_str(), &file) == 0 && ::stat("/proc/self", &own) == 0 &&
         file.st_mtime < own.st_mtime;
}

bool has_driver() {
  size_t number = 0;
  bool found = false;
  each_library([&](const std::string& path) {
    const bool is_of_the_suite = number++ < libraries_of_the_suite;
    found = found || (!is_of_the_suite && path.starts_with('/') &&
                      path.find("libplugrad_") == path.npos && is_installed(path));
  });
  return found;
}

}  // namespace

uint64_t heap_slack_a_round() {
  return has_driver() ? 256 : 8;
}

}  // namespace plugrad::conformance
