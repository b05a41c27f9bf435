// Finds equal keys of one JSON object, of which the parser would silently keep the last.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace plugrad::io {

/// Sees every event of a parse. add() is false for a key that its object has already.
class UniqueKeys {
 public:
  bool add(nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    return event != Event::key || keys_.back().insert(parsed.get<std::string>()).second;
  }

 private:
  std::vector<std::set<std::string>> keys_;  // of the objects being parsed
};

}  // namespace plugrad::io
