#include "conformance/result_text.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace plugrad::conformance {

using nlohmann::json;

// Numbers are encoded as text: JSON has neither NaN nor infinity.
std::string encode_result(const TestResult& result) {
  const json object = {{"status", static_cast<int>(result.status)},
                       {"message", result.message},
                       {"metric", result.metric},
                       {"worst", fmt::format("{:.17g}", result.worst)},
                       {"worst_input", result.worst_input},
                       {"milliseconds", result.milliseconds}};
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

// The plugin shares the worker's memory and may have corrupted the answer.
TestResult decode_result(const std::string& text) {
  try {
    const json object = json::parse(text);
    TestResult result;
    const int status = object.at("status").get<int>();
    if (status < 0 || status > static_cast<int>(Status::Timeout))
      throw std::out_of_range("no status");
    result.status = static_cast<Status>(status);
    result.message = object.at("message").get<std::string>();
    result.metric = object.at("metric").get<std::string>();
    result.worst = std::strtod(object.at("worst").get<std::string>().c_str(), nullptr);
    result.worst_input = object.at("worst_input").get<std::string>();
    result.milliseconds = object.at("milliseconds").get<double>();
    return result;
  } catch (const std::exception&) {
    throw std::runtime_error("the worker's answer is damaged");
  }
}

const char* to_string(Level level) {
  constexpr const char* kNames[] = {"L0", "L1", "L2", "L3", "perf"};
  return kNames[static_cast<size_t>(level)];
}

const char* to_string(Status status) {
  constexpr const char* kNames[] = {"pass", "fail", "unsupported", "waived", "crash", "timeout"};
  return kNames[static_cast<size_t>(status)];
}

}  // namespace plugrad::conformance
