// The first steps of a training in a separate process: `plugrad bench-steps DEVICE`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/peers/peers.h"
#include "bench/suites.h"

namespace plugrad::bench {

/// {"first", "steady" (seconds of a step), "growth_bytes" (of resident memory, at its peak)}.
nlohmann::json run_first_steps(const std::string& device);

std::vector<std::string> first_step_names();
/// Measures the first step with an empty and a filled cache, and memory, against PyTorch.
bool report_first_steps(Peers& peers, const Report& report);

}  // namespace plugrad::bench
