// Environment variables of the REFERENCE device: PLUGRAD_TEST_WITHDRAW drops claims, and
// PLUGRAD_TEST_SHAPE=gpu makes it receive kernels in the form of a GPU.
#pragma once

#include <cstdlib>

#include "runtime/registry.h"

namespace plugrad::oracle {

inline void set_reference_options() {
  runtime::PluginOptions options;
  for (const auto& [key, variable] :
       {std::pair("withdraw", "PLUGRAD_TEST_WITHDRAW"), std::pair("shape", "PLUGRAD_TEST_SHAPE")})
    if (const char* text = std::getenv(variable)) options.emplace_back(key, text);
  if (!options.empty()) runtime::Registry::instance().set_plugin_options("REFERENCE", options);
}

}  // namespace plugrad::oracle
