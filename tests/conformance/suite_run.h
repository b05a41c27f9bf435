// Runs the suite on the faulty plugin.
#pragma once

#include <string>

#include "plugrad/sdk/conformance.h"

namespace plugrad::conformance {

inline Options faulty_options(const std::string& fault, const std::string& filter) {
  Options options;
  options.plugin_path = FAULTY_PLUGIN;
  options.worker_path = CONFORMANCE_WORKER;
  if (!fault.empty()) options.device_options["fault"] = fault;
  options.filter = filter;
  return options;
}

inline const TestResult& result_of(const Report& report, const std::string& id) {
  for (const TestResult& result : report.tests)
    if (result.id == id) return result;
  throw std::runtime_error("the report has no test " + id);
}

}  // namespace plugrad::conformance
