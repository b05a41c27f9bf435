// Calls of the C ABI from a test.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/test.h"
#include "plugrad/plugin_api/plugin.h"

namespace plugrad::conformance {

// An error struct with a message buffer.
class CallError {
 public:
  CallError() {
    PGR_INIT(error_, ERROR);
    error_.message = text_;
    error_.message_capacity = sizeof text_;
  }
  pgr_error* get() { return &error_; }
  std::string message() const;

 private:
  pgr_error error_;
  char text_[1024] = {};
};

// Bytes from a plugin; released by the destructor.
class Blob {
 public:
  Blob() { PGR_INIT(blob_, BLOB); }
  ~Blob() {
    if (blob_.release) blob_.release(&blob_);
  }
  Blob(const Blob&) = delete;
  Blob& operator=(const Blob&) = delete;
  pgr_blob* get() { return &blob_; }
  std::string text() const;

 private:
  pgr_blob blob_;
};

// Views of the map's texts.
std::vector<pgr_option> make_options(const std::map<std::string, std::string>& options);

// "OUT_OF_MEMORY"; an unknown code as "INTERNAL (code 77)".
std::string status_name(pgr_status status);

// Makes `call(pgr_error*)`. Unless it returns OK, ends the test as failed, with the call's name,
// status and message.
[[noreturn]] void fail_call(std::string_view name, pgr_status status, const CallError& error);
template <typename Call>
void expect_ok(std::string_view name, Call&& call) {
  CallError error;
  const pgr_status status = std::forward<Call>(call)(error.get());
  if (status != PGR_STATUS_OK) fail_call(name, status, error);
}

}  // namespace plugrad::conformance
