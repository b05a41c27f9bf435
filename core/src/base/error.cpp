// The exception classes of plugrad/error.h and the throwing half of check.h.
#include "plugrad/error.h"

#include <mutex>

#include "base/check.h"
#include "base/escaping/sanitise_text.h"
#include "base/internal.h"
#include "base/launch/last_error.h"

namespace plugrad {

const char* to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::User:
      return "user";
    case ErrorKind::Unsupported:
      return "unsupported";
    case ErrorKind::Device:
      return "device";
    case ErrorKind::Internal:
      return "internal";
  }
  return "unknown";
}

namespace {

struct LastError {
  std::mutex mutex;
  std::string text;
};

LastError& last_error() {
  static auto* const one = new LastError;
  return *one;
}

void note_device_error(const char* text) {
  try {
    LastError& last = last_error();
    const std::lock_guard lock(last.mutex);
    last.text = text;
  } catch (const std::exception&) {  // without memory for it
  }
}

}  // namespace

std::string last_device_error() {
  LastError& last = last_error();
  const std::lock_guard lock(last.mutex);
  return last.text;
}

Error::Error(ErrorKind kind, const std::string& message, ErrorReason reason)
    : std::runtime_error(sanitise_text(bound_text(message))), kind_(kind), reason_(reason) {
  if (kind == ErrorKind::Device) note_device_error(std::runtime_error::what());
}

struct Error::Recorded {
  std::vector<std::string> places;
  std::string message;
};

const char* Error::what() const noexcept {
  return recorded_ ? recorded_->message.c_str() : std::runtime_error::what();
}

const std::vector<std::string>& Error::recorded_at() const {
  static const std::vector<std::string> kNone;
  return recorded_ ? recorded_->places : kNone;
}

void Error::set_recorded_at(std::vector<std::string> places) {
  std::string message = std::runtime_error::what();
  for (const std::string& place : places) message += "\n  recorded at " + sanitise_text(place);
  recorded_ = std::make_shared<const Recorded>(Recorded{std::move(places), std::move(message)});
}

OutOfMemoryError::OutOfMemoryError(std::uint64_t size_bytes, const std::string& message)
    : Error(ErrorKind::Device, message), size_bytes_(size_bytes) {}

CompileError::CompileError(const std::string& message, std::string source, std::string log)
    : Error(ErrorKind::Device, message), source_(std::move(source)), log_(std::move(log)) {}

CompileError::~CompileError() = default;

void throw_error(ErrorKind kind, const std::string& message, ErrorReason reason) {
  throw Error(kind, message, reason);
}

void throw_internal(Where where, const std::string& message) {
  // Drop the build machine's folders, which mean nothing to the reader.
  std::string file = where.file;
  for (const char* folder : {"core/", "onnx/"})
    if (auto slash = file.rfind(folder); slash != std::string::npos) file = file.substr(slash);
  throw Error(ErrorKind::Internal,
              fmt::format("{} ({}:{}); this is a bug in plugrad", message, file, where.line));
}

void require_core_release(std::string_view library, std::string_view release) {
  require(release == PLUGRAD_RELEASE,
          "[load] {} is of plugrad {}, and libplugrad_core.so of {}: both must be of one release",
          library, release, PLUGRAD_RELEASE);
}

}  // namespace plugrad
