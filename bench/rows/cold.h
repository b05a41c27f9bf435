// The first call of a program in a separate process: `plugrad-bench bench-steps DEVICE PROGRAM`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace plugrad::bench {

/// {"seconds" (processor time of all threads, helpers included), "kernels" (compiled)} of the first call.
nlohmann::json run_cold_call(const std::string& device, const std::string& program);

}  // namespace plugrad::bench
