// Converts plugin status codes to exceptions, and exceptions of the host to status codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "plugrad/plugin_api/status.h"
#include "runtime/float_state.h"

namespace plugrad::runtime {

/// E.g. "OUT_OF_MEMORY"; unknown codes read as INTERNAL.
const char* status_name(pgr_status status);

/// A message for one call. What the callee did not write reads as zero, whatever size it states.
class CallError {
 public:
  static constexpr std::size_t kCapacity = 1024;

  /// With a buffer of this thread, which must destroy the object.
  CallError();
  /// With the caller's buffer, which must be zero.
  explicit CallError(char (&buffer)[kCapacity]);
  ~CallError();
  CallError(const CallError&) = delete;
  CallError& operator=(const CallError&) = delete;
  pgr_error* get() { return &error_; }
  /// The plugin's message; empty if there is none.
  std::string message() const;

 private:
  pgr_error error_;
  char* const message_;
  bool is_of_thread_ = false;
};

/// Throws for a status other than OK: Unsupported for UNSUPPORTED, else Device. The message has
/// device, call, code and the plugin's message.
[[noreturn]] void throw_status(std::string_view device, std::string_view call, pgr_status status,
                               const std::string& plugin_message);

/// In a catch block: describes the exception that a broken plugin let escape.
std::string describe_escaped();

/// Calls f(error) -> status. An escaped C++ exception of a broken plugin counts as INTERNAL.
template <class F>
pgr_status guarded(CallError& error, std::string& escaped, const F& f) {
  const FloatStateScope float_state;
  try {
    return f(error.get());
  } catch (...) {
    escaped = describe_escaped();
  }
  return PGR_STATUS_INTERNAL;
}

/// Calls f(error) -> status and throws unless it is OK.
template <class F>
void checked(std::string_view device, std::string_view call, const F& f) {
  CallError error;
  std::string escaped;
  pgr_status status = guarded(error, escaped, f);
  if (status != PGR_STATUS_OK) [[unlikely]]
    throw_status(device, call, status, escaped.empty() ? error.message() : escaped);
}

/// Fills a plugin's error, if it passed one, and returns `code`.
pgr_status set_error(pgr_error* error, pgr_status code, std::string_view message);

inline std::string_view view(const pgr_string& s) {
  return {s.data, static_cast<std::size_t>(s.size)};
}
inline pgr_string c_string(std::string_view s) {
  return {s.data(), s.size()};
}
/// Copies the text; empty if it is NULL or too long.
std::string copied(const pgr_string& s);

/// The beginning of a long text of a plugin, e.g. a log, with a line that says so.
std::string beginning_of(std::string_view text);

/// Upper limit of a source, binary or log, in bytes.
constexpr std::uint64_t kMostBlobBytes = std::uint64_t{1} << 30;

/// Bytes of a callee, released by the destructor.
class Blob {
 public:
  Blob() { PGR_INIT(blob_, BLOB); }
  ~Blob() {
    const FloatStateScope float_state;
    if (blob_.release) blob_.release(&blob_);
  }
  Blob(const Blob&) = delete;
  Blob& operator=(const Blob&) = delete;
  pgr_blob* get() { return &blob_; }
  const void* data() const { return blob_.data; }
  std::uint64_t size() const { return blob_.data ? blob_.size : 0; }
  /// Call before copying its bytes. Errors: Device for more than kMostBlobBytes.
  void check(const std::string& device, const char* call) const;
  std::string_view text() const { return {static_cast<const char*>(blob_.data), size()}; }

 private:
  pgr_blob blob_;
};

}  // namespace plugrad::runtime
