// The first steps of a training in a process of its own: `plugrad bench-steps DEVICE`.
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
/// What the first step costs with an empty and a filled cache, and the memory, beside PyTorch's.
bool report_first_steps(Peers& peers, const Report& report);

}  // namespace plugrad::bench
