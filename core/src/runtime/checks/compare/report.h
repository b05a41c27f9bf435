// The compare layer's report of a launch that differs, and the layer's options.
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
  Difference difference;
  std::string device, other;  // "ACME:0", "REFERENCE:0"
  HostMemory got;             // after the launch on `device`
};

/// Kernel, device, buffer, index, values, ulp, and the values before the launch.
std::string describe(const Finding& finding);
/// The difference as the trace has it (docs/trace-format.md).
std::string difference_json(const Finding& finding);

/// Writes the launch as a recording. Returns its path; empty if it cannot be written.
std::string write_replay(const Finding& finding, const std::string& folder);

/// The smallest kernel that still differs on `own`, a second handle of the device: its operations,
/// its lines, its values and how to repeat it alone.
std::string describe_smallest(const Finding& finding, Device& own, Device& other,
                              const CompareOptions& options);

/// A token for `plugrad conformance --replay` that runs the kernel on random inputs. One that is
/// too long for a command line is written to a file in `folder`, whose path stands for it; empty if
/// it cannot be written.
std::string conformance_token(const KernelLines& kernel, const std::string& folder);

}  // namespace plugrad::runtime
