// The plans of a recorded program: its sharded values, what moves, and the steps in their order.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace plugrad::tools {

/// Reads the plans of a trace (docs/trace-format.md). Errors: User, if it cannot be read.
nlohmann::ordered_json plans_of_trace(const std::string& path);

/// A line a value, a movement and a step.
std::string plans_text(const nlohmann::ordered_json& plans);

}  // namespace plugrad::tools
