/// The one exception type of plugrad, and its kinds. Code inside core throws with base/check.h.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugrad/export.h"

namespace plugrad {

enum class ErrorKind : std::uint8_t {
  User,         ///< an argument, a file or a setting is wrong: change the input
  Unsupported,  ///< the request is sound, but this device or version cannot do it
  Device,       ///< a plugin or its device reported a failure
  Internal,     ///< a bug in plugrad
};

/// The property of an argument that is wrong, for errors of kind User. Bindings of languages that
/// tell these errors apart raise IndexError, TypeError and the like.
enum class ErrorReason : std::uint8_t {
  Value,     ///< any other: a shape, a number, a file
  Index,     ///< an index or axis is out of range
  Type,      ///< a dtype, or a type of argument, that the function does not take
  Overflow,  ///< a number that the dtype does not hold
};

/// "user", "unsupported", "device" or "internal".
PLUGRAD_API const char* to_string(ErrorKind kind);

/// what() is "[operation] what failed, on what, and what to do".
class PLUGRAD_API Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, ErrorReason reason = ErrorReason::Value);
  ErrorKind kind() const { return kind_; }
  ErrorReason reason() const { return reason_; }
  /// The message, then the places of recorded_at().
  const char* what() const noexcept override;

  /// Where the program recorded the operations that failed when they were computed, such as
  /// "train.py:31, in step". Empty if a binding gives no places (binding.h), or if the failing
  /// function is where the exception was thrown.
  const std::vector<std::string>& recorded_at() const;
  void set_recorded_at(std::vector<std::string> places);

 private:
  struct Recorded;
  ErrorKind kind_;
  ErrorReason reason_;
  std::shared_ptr<const Recorded> recorded_;  // null: no places
};

/// Memory of a device, or PLUGRAD_MEMORY_LIMIT, is used up. Kind: Device. Nothing was allocated.
class PLUGRAD_API OutOfMemoryError : public Error {
 public:
  OutOfMemoryError(std::uint64_t size_bytes, const std::string& message);
  std::uint64_t size_bytes() const { return size_bytes_; }

 private:
  std::uint64_t size_bytes_;
};

/// A device's compiler refused a kernel. Kind: Device. what() shows the log and the numbered
/// source.
class PLUGRAD_API CompileError : public Error {
 public:
  CompileError(const std::string& message, std::string source, std::string log);
  ~CompileError() override;
  CompileError(const CompileError&) = default;
  CompileError& operator=(const CompileError&) = default;
  const std::string& source() const { return source_; }
  const std::string& log() const { return log_; }

 private:
  std::string source_, log_;
};

}  // namespace plugrad
