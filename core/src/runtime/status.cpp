#include "runtime/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "plugrad/error.h"
#include "runtime/plugin_text.h"

namespace plugrad::runtime {
namespace {

constexpr std::uint64_t kLongestString = 1 << 20;

const char* meaning(pgr_status status) {
  switch (status) {
#define PLUGRAD_ROW(NAME, number, text) \
  case number:                          \
    return text;
    PGR_STATUSES(PLUGRAD_ROW)
#undef PLUGRAD_ROW
    default:
      return "a code that this host does not know";
  }
}

}  // namespace

const char* status_name(pgr_status status) {
  switch (status) {
#define PLUGRAD_ROW(NAME, number, text) \
  case number:                          \
    return #NAME;
    PGR_STATUSES(PLUGRAD_ROW)
#undef PLUGRAD_ROW
    default:
      return "INTERNAL";
  }
}

std::string CallError::message() const {
  std::uint64_t size = std::min<std::uint64_t>(error_.message_size, sizeof message_);
  return sanitise_text(std::string_view(message_, size));
}

void throw_status(std::string_view device, std::string_view call, pgr_status status,
                  const std::string& plugin_message) {
  ErrorKind kind = status == PGR_STATUS_UNSUPPORTED ? ErrorKind::Unsupported : ErrorKind::Device;
  const std::string said = plugin_message.empty() ? meaning(status) : plugin_message;
  std::string text = fmt::format("[{}] {}: {} ({})", call, device, said, status_name(status));
  if (status == PGR_STATUS_OUT_OF_MEMORY) throw OutOfMemoryError(0, text);
  throw Error(kind, text);
}

std::string describe_escaped() {
  try {
    throw;
  } catch (const std::exception& e) {
    return "an exception left the plugin: " + sanitise_text(std::string_view(e.what()));
  } catch (...) {
    return "an exception left the plugin";
  }
}

pgr_status set_error(pgr_error* error, pgr_status code, std::string_view message) {
  if (!error || !PGR_HAS_FIELD(pgr_error, error, code)) return code;
  error->code = code;
  if (!error->message) return code;
  std::uint64_t size = std::min<std::uint64_t>(message.size(), error->message_capacity);
  std::memcpy(error->message, message.data(), size);
  if (size < error->message_capacity) error->message[size] = 0;
  error->message_size = size;
  return code;
}

std::string copied(const pgr_string& s) {
  if (!s.data || s.size > kLongestString) return "";
  return std::string(view(s));
}

void Blob::check(const std::string& device, const char* call) const {
  if (size() > kMostBlobBytes)
    throw_status(
        device, call, PGR_STATUS_INTERNAL,
        fmt::format("the plugin gave {} bytes; at most {} are taken", size(), kMostBlobBytes));
}

}  // namespace plugrad::runtime
