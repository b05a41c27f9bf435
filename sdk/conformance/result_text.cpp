#include "conformance/result_text.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace plugrad::conformance {

using nlohmann::json;

// Numbers travel as text: JSON has neither NaN nor infinity.
std::string encode_result(const TestResult& result) {
  const json object = {{"status", static_cast<int>(result.status)},
                       {"message", result.message},
                       {"metric", result.metric},
                       {"worst", fmt::format("{:.17g}", result.worst)},
                       {"worst_input", result.worst_input},
                       {"milliseconds", result.milliseconds}};
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

TestResult decode_result(const std::string& text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains("status"))
    throw std::runtime_error("the worker's answer is damaged");
  TestResult result;
  result.status = static_cast<Status>(object["status"].get<int>());
  result.message = object["message"].get<std::string>();
  result.metric = object["metric"].get<std::string>();
  result.worst = std::strtod(object["worst"].get<std::string>().c_str(), nullptr);
  result.worst_input = object["worst_input"].get<std::string>();
  result.milliseconds = object["milliseconds"].get<double>();
  return result;
}

}  // namespace plugrad::conformance
