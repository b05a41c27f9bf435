// SPDX-License-Identifier: Apache-2.0
// The boundary between C++ code and the C ABI: exceptions become statuses; writes to the caller's
// strings and structs are clamped to their size.
#pragma once

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "plugrad/plugin_api/plugin.h"

namespace plugrad::sdk {

// Thrown inside a plugin to end the current ABI call with this status.
class StatusError : public std::runtime_error {
 public:
  StatusError(pgr_status status, const std::string& message, int32_t native_code = 0)
      : std::runtime_error(message), status_(status), native_code_(native_code) {}
  pgr_status status() const { return status_; }
  int32_t native_code() const { return native_code_; }

 private:
  pgr_status status_;
  int32_t native_code_;
};

// Throws StatusError(status, message) unless the condition holds.
void require(bool condition, pgr_status status, std::string_view message);

// Writes status and message into `error`, which may be NULL, within its size and capacity. Returns
// the status.
pgr_status report(pgr_error* error, pgr_status status, std::string_view message,
                  int32_t native_code = 0) noexcept;

// In a catch block: reports the current exception. StatusError gives its own status, bad_alloc
// OUT_OF_HOST_MEMORY, everything else INTERNAL.
pgr_status report_current_exception(pgr_error* error) noexcept;

// Runs `body` and converts exceptions to a status. Every function of a table is one guard call.
template <typename Body>
pgr_status guard(pgr_error* error, Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return PGR_STATUS_OK;
  } catch (...) {
    return report_current_exception(error);
  }
}

inline std::string_view to_view(const pgr_string& text) {
  return text.data ? std::string_view(text.data, text.size) : std::string_view();
}
inline std::string_view to_view(const pgr_string* text) {
  return text ? to_view(*text) : std::string_view();
}
// The bytes must outlive the result.
inline pgr_string to_pgr(std::string_view text) {
  return {text.data(), text.size()};
}

// Throws StatusError (INCOMPATIBLE) if the chain has a required extension: this SDK knows no
// extension. Optional extensions are ignored.
void check_chain(const void* next);

// Copies `value` into a caller's struct: the fields behind the 16-byte header that both sides know.
// The caller's size, id and chain are kept.
template <typename Struct>
void fill(Struct* out, const Struct& value) {
  require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "the struct to fill is NULL");
  check_chain(out->next);
  constexpr size_t kHeader = sizeof(pgr_struct_header);
  const size_t size = std::min<size_t>(out->struct_size, sizeof(Struct));
  if (size <= kHeader) return;
  std::memcpy(reinterpret_cast<char*>(out) + kHeader,
              reinterpret_cast<const char*>(&value) + kHeader, size - kHeader);
}

// Copies a caller's struct; fields that the caller does not know are 0.
template <typename Struct>
Struct read(const Struct* in) {
  require(in != nullptr, PGR_STATUS_INVALID_ARGUMENT, "a struct argument is NULL");
  check_chain(in->next);
  Struct own{};
  std::memcpy(static_cast<void*>(&own), in, std::min<size_t>(in->struct_size, sizeof(Struct)));
  return own;
}

// Transfers the bytes to the caller, who releases them. A NULL `out` is ignored.
void give_blob(pgr_blob* out, std::string bytes);

}  // namespace plugrad::sdk
