// Throws plugrad::Error if a condition does not hold; messages are fmt format strings.
//   require(axis < rank, "[sum] axis {} is out of range for shape {}", axis, shape);  // user error
//   ensure(node.op == Op::Range, "node {} is no range", id);                          // our bug
#pragma once

#include <fmt/format.h>

#include <string>
#include <type_traits>
#include <utility>

#include "base/internal.h"
#include "plugrad/error.h"

namespace plugrad {

/// Source location of a call.
struct Where {
  const char* file;
  int line;
  static constexpr Where here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

/// A format string checked at compile time, with the source location of its call.
template <class... Args>
struct LocatedFormat {
  fmt::format_string<Args...> text;
  Where where;
  template <class S>
    requires std::is_convertible_v<const S&, fmt::string_view>
  // NOLINTNEXTLINE: implicit, so that a literal converts.
  consteval LocatedFormat(const S& s, Where w = Where::here(__builtin_FILE(), __builtin_LINE()))
      : text(s), where(w) {}
};

[[noreturn]] PLUGRAD_INTERNAL void throw_error(ErrorKind kind, const std::string& message,
                                               ErrorReason reason = ErrorReason::Value);
[[noreturn]] PLUGRAD_INTERNAL void throw_internal(Where where, const std::string& message);

/// Throws an Error of `kind` unconditionally.
template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw_error(kind, fmt::format(format, std::forward<Args>(args)...));
}

/// Throws kind User unless `ok`.
template <class... Args>
void require(bool ok, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok) [[unlikely]]
    throw_error(ErrorKind::User, fmt::format(format, std::forward<Args>(args)...));
}

/// The same, for an index or axis out of range.
template <class... Args>
void require_index(bool ok, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok) [[unlikely]]
    throw_error(ErrorKind::User, fmt::format(format, std::forward<Args>(args)...),
                ErrorReason::Index);
}

/// The same, for a dtype that the function does not take.
template <class... Args>
void require_type(bool ok, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok) [[unlikely]]
    throw_error(ErrorKind::User, fmt::format(format, std::forward<Args>(args)...),
                ErrorReason::Type);
}

/// Throws kind Internal with file and line unless `ok`. Kept in release builds.
template <class... Args>
void ensure(bool ok, LocatedFormat<std::type_identity_t<Args>...> format, Args&&... args) {
  if (!ok) [[unlikely]]
    throw_internal(format.where, fmt::format(format.text, std::forward<Args>(args)...));
}
inline void ensure(bool ok, Where where = Where::here(__builtin_FILE(), __builtin_LINE())) {
  if (!ok) [[unlikely]]
    throw_internal(where, "a state that must not occur");
}

}  // namespace plugrad
