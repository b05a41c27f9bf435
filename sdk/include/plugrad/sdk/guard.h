// SPDX-License-Identifier: Apache-2.0
// The border between C++ code and the C line: exceptions become statuses, strings and structs cross
// with clamped writes.
#pragma once

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "plugrad/plugin_api/plugin.h"

namespace plugrad::sdk {

// Thrown inside a plugin where a call should end with this status.
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

// Writes status and message into `error`, which may be NULL, within its size and capacity; returns
// the status.
pgr_status report(pgr_error* error, pgr_status status, std::string_view message,
                  int32_t native_code = 0) noexcept;

// Inside a catch block: reports the current exception. StatusError gives its own status, bad_alloc
// OUT_OF_HOST_MEMORY, anything else INTERNAL.
pgr_status report_current_exception(pgr_error* error) noexcept;

// Runs `body` and turns what it throws into a status. Every function of a table is one guard call.
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
// The bytes must outlive the use of the result.
inline pgr_string to_pgr(std::string_view text) {
  return {text.data(), text.size()};
}

// Throws StatusError (INCOMPATIBLE) where a struct behind `next` must be understood: this SDK knows
// no extension yet, and skips the others.
void check_chain(const void* next);

// Copies `value` into a caller's struct: the fields behind the 16-byte header, as far as both sides
// know them. The caller's size, id and chain stay as they are.
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

// A struct of ours with every field of a caller's that the caller knew; the others are 0.
template <typename Struct>
Struct read(const Struct* in) {
  require(in != nullptr, PGR_STATUS_INVALID_ARGUMENT, "a struct argument is NULL");
  check_chain(in->next);
  Struct own{};
  std::memcpy(static_cast<void*>(&own), in, std::min<size_t>(in->struct_size, sizeof(Struct)));
  return own;
}

// Gives the bytes to the caller, who releases them. A NULL `out` is ignored.
void give_blob(pgr_blob* out, std::string bytes);

}  // namespace plugrad::sdk
