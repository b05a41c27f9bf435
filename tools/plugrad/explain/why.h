// plugrad explain --why: a kernel's schedule compared with alternatives, with the cost model's
// predictions.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "engine/report.h"

namespace plugrad::tools {

/// Prints one table per kernel to stdout.
void print_choices(const std::vector<engine::KernelReport>& kernels);
/// Per kernel: "machine", "candidates" (the first is the kernel's own, the second the planned
/// loops), "looked_at".
nlohmann::ordered_json choice_json(const engine::KernelReport& kernel);

}  // namespace plugrad::tools
