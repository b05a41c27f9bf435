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

namespace {

// Zero while no call uses them. Calls within calls are rare: the deepest share a buffer.
struct MessageBuffers {
  static constexpr unsigned kCount = 3;
  char text[kCount][CallError::kCapacity];
  unsigned used;
};
thread_local MessageBuffers message_buffers{};

}  // namespace

CallError::CallError()
    : CallError(message_buffers.text[std::min(message_buffers.used, MessageBuffers::kCount - 1)]) {
  ++message_buffers.used;
  is_of_thread_ = true;
}

CallError::CallError(char (&buffer)[kCapacity]) : message_(buffer) {
  PGR_INIT(error_, ERROR);
  error_.message = message_;
  error_.message_capacity = kCapacity;
}

CallError::~CallError() {
  if (is_of_thread_) --message_buffers.used;
  if (error_.message_size != 0 || *message_ != 0) std::memset(message_, 0, kCapacity);
}

// Without the zeros after the text that a too large size includes.
std::string CallError::message() const {
  std::uint64_t size = std::min<std::uint64_t>(error_.message_size, kCapacity);
  while (size > 0 && message_[size - 1] == 0) --size;
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

std::string beginning_of(std::string_view text) {
  constexpr std::size_t kMost = 64 << 10;  // more than compilers say of one kernel
  if (text.size() <= kMost) return std::string(text);
  return fmt::format("{}\n(the first {} of {} bytes)", text.substr(0, kMost), kMost, text.size());
}

void Blob::check(const std::string& device, const char* call) const {
  if (size() > kMostBlobBytes)
    throw_status(
        device, call, PGR_STATUS_INTERNAL,
        fmt::format("the plugin gave {} bytes; at most {} are taken", size(), kMostBlobBytes));
}

}  // namespace plugrad::runtime
