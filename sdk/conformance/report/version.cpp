#include <fmt/format.h>

#include "conformance/report/report.h"
#include "plugrad/plugin_api/plugin.h"

namespace plugrad::conformance {

// The ABI's version and a digest of the ids: another set of tests is another suite.
const std::string& suite_version() {
  static const std::string version = [] {
    std::string ids;
    for (const Test& test : all_tests()) ids += test.id + "\n";
    return fmt::format("{}.{}-", PGR_API_MAJOR, PGR_API_MINOR) + sha256(ids).substr(0, 8);
  }();
  return version;
}

}  // namespace plugrad::conformance
