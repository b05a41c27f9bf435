// Reports of `plugrad plan-scale`, as text for a terminal and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "scale/search.h"

namespace plugrad::tools {

struct ScaleReport {
  const scale::Program& program;
  const scale::Machine& machine;
  const sharding::Mesh& mesh;
  const scale::SearchResult& result;
  bool is_corrected;  ///< by times of the trace
  double seconds;     ///< that the search took
  size_t top;         ///< specs that the text shows
};

std::string scale_text(const ScaleReport& report);
nlohmann::ordered_json scale_json(const ScaleReport& report);

}  // namespace plugrad::tools
