#include "conformance/plugin/calls.h"

#include <algorithm>

namespace plugrad::conformance {

std::string CallError::message() const {
  return std::string(text_, std::min<uint64_t>(error_.message_size, sizeof text_ - 1));
}

std::string Blob::text() const {
  return blob_.data ? std::string(static_cast<const char*>(blob_.data), blob_.size) : "";
}

std::vector<pgr_option> make_options(const std::map<std::string, std::string>& options) {
  std::vector<pgr_option> made;
  for (const auto& [key, value] : options) {
    pgr_option& option = made.emplace_back();
    PGR_INIT(option, OPTION);
    option.key = sdk::to_pgr(key);
    option.value = sdk::to_pgr(value);
  }
  return made;
}

std::string status_name(pgr_status status) {
  switch (status) {
#define PLUGRAD_STATUS_CASE(NAME, number, meaning) \
  case number:                                     \
    return #NAME;
    PGR_STATUSES(PLUGRAD_STATUS_CASE)
#undef PLUGRAD_STATUS_CASE
    default:
      return "INTERNAL (code " + std::to_string(status) + ")";
  }
}

void fail_call(std::string_view name, pgr_status status, const CallError& error) {
  std::string text = std::string(name) + " answered " + status_name(status);
  if (const std::string message = error.message(); !message.empty()) text += ": " + message;
  throw Failed(text);
}

}  // namespace plugrad::conformance
