// plugrad explain --why: the schedule that a kernel got beside others, with what the cost model
// predicts of each.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "engine/report.h"

namespace plugrad::tools {

/// To stdout, a table a kernel.
void print_choices(const std::vector<engine::KernelReport>& kernels);
/// By kernel: "machine", "candidates" (the first is the kernel's own, the second the loops as they
/// were planned), "looked_at".
nlohmann::ordered_json choice_json(const engine::KernelReport& kernel);

}  // namespace plugrad::tools
