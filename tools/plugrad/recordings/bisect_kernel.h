// Finds what in the making of one kernel is at fault: the device, a rule, a stage, or a step of the
// schedule.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/kernel_ast.h"
#include "runtime/checks/compare/launch_data.h"

namespace plugrad::tools {

/// One change of the kernel's making that gives the right result.
struct Mender {
  std::string kind;  // "rule", "stage", "schedule step", "schedule"
  std::string name;
  std::string setting;  // that makes this change in a program
};

struct KernelVerdict {
  std::string name, difference;
  bool is_right_now = false;  // as this build makes it, with its settings
  bool is_device = false;     // the device computes the recorded kernel IR wrongly
  uint64_t tried = 0;
  std::vector<Mender> menders;  // those of rules first
};

/// The recorded kernel as launched: its IR, its AST and the memory before the launch.
struct KernelCase {
  std::string name;
  std::shared_ptr<const KernelAst> ast;
  runtime::KernelLines recorded;
  runtime::LaunchData data;
};

/// Nothing if the kernel as recorded is right on `device`. The right result: that of the AST without
/// a schedule, on `reference`.
std::optional<KernelVerdict> bisect_kernel(const KernelCase& kernel, runtime::Device& device,
                                           runtime::Device& reference);

}  // namespace plugrad::tools
