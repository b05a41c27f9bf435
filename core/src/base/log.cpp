// Writes lines to stderr with one write each, so that lines of several threads do not mix.
#include "base/log.h"

#include <unistd.h>

#include <cstdio>
#include <mutex>

#include "base/escaping/sanitise_text.h"
#include "base/file.h"
#include "base/launch/launcher.h"

namespace plugrad {
namespace {

struct Sink {
  std::mutex mutex;
  LogSink function = nullptr;
  void* context = nullptr;
};

Sink& sink() {
  static Sink* instance = new Sink;  // plugins may log until the process is gone
  return *instance;
}

void write_out(std::string_view text) {
  Sink& s = sink();
  std::lock_guard lock(s.mutex);
  if (s.function) {
    s.function(text, s.context);
    return;
  }
  const NoFileSizeSignal quiet;  // the log may be a file
  std::fwrite(text.data(), 1, text.size(), stderr);
}

/// "rank 1: " in a program of several processes; otherwise empty.
const std::string& rank_text() {
  static const std::string* const text = [] {
    const Launch launch = launch_of_process();
    return new std::string(launch.size == 1 ? "" : fmt::format("rank {}: ", launch.rank));
  }();
  return *text;
}

const char* code_of(Color color) {
  switch (color) {
    case Color::Plain:
      return "";
    case Color::Blue:
      return "\033[34m";
    case Color::BrightBlue:
      return "\033[94m";
    case Color::Cyan:
      return "\033[36m";
    case Color::Red:
      return "\033[31m";
    case Color::Yellow:
      return "\033[33m";
    case Color::Purple:
      return "\033[35m";
    case Color::Green:
      return "\033[32m";
    case Color::Gray:
      return "\033[90m";
    case Color::Bold:
      return "\033[1m";
  }
  return "";
}

}  // namespace

void log_line(LogLevel level, std::string_view foreign) {
  const std::string text = sanitise_text(foreign);
  switch (level) {
    case LogLevel::Error:
      return write_out(fmt::format("plugrad: error: {}\n", text));
    case LogLevel::Warning:
      return write_out(fmt::format("plugrad: warning: {}\n", text));
    case LogLevel::Info:
      if (debugging(1)) write_out(fmt::format("plugrad: {}\n", text));
      return;
    case LogLevel::Debug:
      if (debugging(2)) write_out(fmt::format("plugrad: {}\n", text));
      return;
  }
}

void debug_write(std::string_view text) {
  const std::string& rank = rank_text();
  if (rank.empty()) return write_out(text);
  std::string lines;
  bool begins_line = !text.starts_with('\r');  // a progress line is drawn anew
  for (const char c : text) {
    if (begins_line) lines += rank;
    lines += c;
    begins_line = c == '\n';
  }
  write_out(lines);
}

void set_log_sink(LogSink function, void* context) {
  Sink& s = sink();
  std::lock_guard lock(s.mutex);
  s.function = function;
  s.context = context;
}

bool shows_color() {
  static const bool terminal = isatty(STDERR_FILENO) == 1;
  return terminal && settings().color;
}

std::string colored(std::string_view text, Color color) {
  if (!shows_color() || color == Color::Plain) return std::string(text);
  return fmt::format("{}{}\033[0m", code_of(color), text);
}

std::string as_shown(std::string_view text) {
  if (shows_color()) return std::string(text);
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\033')
      plain += text[i];
    else
      while (i < text.size() && text[i] != 'm') ++i;
  }
  return plain;
}

std::size_t visible_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      while (i < text.size() && text[i] != 'm') ++i;
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {  // not a UTF-8 continuation
      ++width;
    }
  }
  return width;
}

}  // namespace plugrad
