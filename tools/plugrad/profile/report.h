// Reports of a summed-up trace, as text for a terminal and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "trace/compare.h"
#include "trace/summary.h"

namespace plugrad::tools {

/// `top`: rows of kernels at most.
std::string profile_text(const trace::Trace& trace, const trace::Summary& summary, size_t top);
nlohmann::ordered_json profile_json(const trace::Trace& trace, const trace::Summary& summary,
                                    size_t top);

struct Comparison {
  const trace::Trace& trace;
  const trace::Summary& summary;
  std::string path;
};
/// What became slower or faster since `before`.
std::string compare_text(const Comparison& before, const Comparison& after, size_t top);
nlohmann::ordered_json compare_json(const Comparison& before, const Comparison& after);

}  // namespace plugrad::tools
