// Messages for users on stderr, and terminal colours.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/settings.h"
#include "plugrad/export.h"

namespace plugrad {

enum class LogLevel { Error, Warning, Info, Debug };

/// Writes one whole line: Error and Warning always, Info from DEBUG=1, Debug from DEBUG=2.
PLUGRAD_API void log_line(LogLevel level, std::string_view text);

/// Writes the output of a DEBUG level in one piece between those of other threads. In a program of
/// several processes each line begins with "rank 1: ".
PLUGRAD_API void debug_write(std::string_view text);

template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::Warning, fmt::format(format, std::forward<Args>(args)...));
}

/// Whether the user asked for at least this much output.
inline bool debugging(int level) {
  return settings().debug >= level;
}

/// Receives the text in place of stderr; for tests and programs with their own log. Null: stderr.
using LogSink = void (*)(std::string_view text, void* context);
PLUGRAD_API void set_log_sink(LogSink sink, void* context);

/// The colours of axes in kernel names, and those of a DEBUG=2 line.
enum class Color { Plain, Blue, BrightBlue, Cyan, Red, Yellow, Purple, Green, Gray, Bold };

/// `text` in `color`; unchanged if stderr is no terminal or NO_COLOR is set.
PLUGRAD_API std::string colored(std::string_view text, Color color);

/// Removes the colours of `text` if `colored` would add none.
PLUGRAD_API std::string as_shown(std::string_view text);

/// Visible characters of `text`, without escape sequences; for padding.
PLUGRAD_API std::size_t visible_width(std::string_view text);

}  // namespace plugrad
