// Messages for people, on stderr; colours of a terminal.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/settings.h"
#include "plugrad/export.h"

namespace plugrad {

enum class LogLevel { Error, Warning, Info, Debug };

/// Writes one whole line. Error and Warning always; Info from DEBUG=1, Debug from DEBUG=2.
PLUGRAD_API void log_line(LogLevel level, std::string_view text);

/// Writes text that a DEBUG level asked for, as it is, whole and not torn by other threads.
PLUGRAD_API void debug_write(std::string_view text);

template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::Warning, fmt::format(format, std::forward<Args>(args)...));
}

/// Whether the user asked for at least this much output.
inline bool debugging(int level) {
  return settings().debug >= level;
}

/// Receives what would go to stderr; for tests and programs with a log of their own. Null: stderr
/// again.
using LogSink = void (*)(std::string_view text, void* context);
PLUGRAD_API void set_log_sink(LogSink sink, void* context);

/// The colours of semantics.md's kernel names, and those that a DEBUG=2 line uses.
enum class Color { Plain, Blue, BrightBlue, Cyan, Red, Yellow, Purple, Green, Gray, Bold };

/// `text` in `color`; as it is when stderr is no terminal or NO_COLOR is set.
PLUGRAD_API std::string colored(std::string_view text, Color color);

/// Text that has colours already, without them where `colored` would give none.
PLUGRAD_API std::string as_shown(std::string_view text);

/// Characters of `text` that show, without escape sequences: what padding must count.
PLUGRAD_API std::size_t visible_width(std::string_view text);

}  // namespace plugrad
