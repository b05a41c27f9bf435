// What the compare layer reports about a launch that differs, and the layer's options.
#pragma once

#include <string>

#include "runtime/checks/compare/differences.h"
#include "runtime/checks/layers.h"

namespace plugrad::runtime {

struct CompareOptions {
  std::string with = "REFERENCE";
  bool stop = false;  // the launch fails
  double share = 0;   // percent of the program's time; 0: no limit
  double shrink_seconds = 10;
  std::string folder;  // for replay files; empty: "differences" in the cache directory
};
CompareOptions compare_options(const LayerChoice& choice);

struct Finding {
  const KernelLines& kernel;
  const LaunchData& data;
  const Difference& difference;
  const std::string& device;
  const std::string& other;
};

/// Kernel, device, buffer, index, values, ulp, and the values that were read.
std::string describe(const Finding& finding);

}  // namespace plugrad::runtime
