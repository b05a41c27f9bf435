#include <fmt/format.h>

#include "conformance/report/report.h"
#include "plugrad/plugin_api/plugin.h"

namespace plugrad::conformance {

// ABI version and digest of the ids: a different set of tests is a different suite version.
const std::string& suite_version() {
  static const std::string version = [] {
    std::string ids;
    for (const Test& test : all_tests()) ids += test.id + "\n";
    return fmt::format("{}.{}-", PGR_API_MAJOR, PGR_API_MINOR) + sha256(ids).substr(0, 8);
  }();
  return version;
}

}  // namespace plugrad::conformance
