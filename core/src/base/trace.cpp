// Writes the trace to one stdio stream, flushed at exit, instead of replace_file: after a crash,
// the file has all events written before.
#include "base/trace.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

namespace plugrad {
namespace {

struct Trace {
  std::mutex mutex;
  std::string path;
  std::FILE* file = nullptr;
  int error = 0;  // the first write error

  void note(bool is_written) {
    if (!is_written && error == 0) error = errno;
  }
};

Trace& trace();

// Runs before the C library flushes, which at the file size limit would end the process.
void finish() {
  Trace& t = trace();
  const std::lock_guard lock(t.mutex);
  const NoFileSizeSignal quiet;
  if (t.file) t.note(std::fclose(t.file) == 0);
  t.file = nullptr;
  if (t.error != 0)
    log_warning("PLUGRAD_TRACE={} is not whole: {}", t.path, std::strerror(t.error));
}

// Null and the error if it is not a regular file: opening a FIFO would wait for a reader.
std::FILE* open_trace(const std::string& path, int& error) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    error = S_ISDIR(info.st_mode) ? EISDIR : kNotRegular;
    return nullptr;
  }
  std::FILE* const file = std::fopen(path.c_str(), "we");
  error = errno;
  return file;
}

// Opened on first use with the first trace path of the process; scopes may switch recording off and
// on.
Trace& trace() {
  static Trace* instance = [] {
    auto* made = new Trace;
    int error = 0;
    made->path = settings().trace_path;
    made->file = open_trace(made->path, error);
    if (made->file) {
      std::atexit(finish);
      std::setvbuf(made->file, nullptr, _IOFBF, 1 << 18);
      std::fputs("[\n", made->file);
    } else {
      log_warning("cannot write PLUGRAD_TRACE={}: {}; nothing is traced", made->path,
                  file_error_text(error));
    }
    return made;
  }();
  return *instance;
}

int thread_number() {
  static std::atomic<int> next{0};
  thread_local const int mine = next.fetch_add(1);
  return mine;
}

void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_value(std::string& out, const TraceArg& arg) {
  auto to = std::back_inserter(out);
  if (auto* number = std::get_if<std::int64_t>(&arg.value)) {
    fmt::format_to(to, "{}", *number);
  } else if (auto* real = std::get_if<double>(&arg.value)) {
    if (std::isfinite(*real))
      fmt::format_to(to, "{}", *real);
    else
      out += "null";  // JSON has no infinity
  } else {
    append_string(out, std::get<std::string_view>(arg.value));
  }
}

void write_event(std::string_view category, std::string_view name, std::string_view when,
                 std::initializer_list<TraceArg> args) {
  Trace& t = trace();
  std::string line = "{\"name\":";
  append_string(line, name);
  line += ",\"cat\":";
  append_string(line, category);
  fmt::format_to(std::back_inserter(line), ",{},\"pid\":{},\"tid\":{},\"args\":{{", when, getpid(),
                 thread_number());
  const char* separator = "";
  for (const TraceArg& arg : args) {
    line += separator;
    append_string(line, arg.key);
    line += ':';
    append_value(line, arg);
    separator = ",";
  }
  line += "}},\n";
  std::lock_guard lock(t.mutex);
  const NoFileSizeSignal quiet;
  if (t.file) t.note(std::fwrite(line.data(), 1, line.size(), t.file) == line.size());
}

double microseconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1000;
}

}  // namespace

bool tracing() {
  return !settings().trace_path.empty();
}

void trace_span(std::string_view category, std::string_view name, std::uint64_t start_ns,
                std::initializer_list<TraceArg> args) {
  if (!tracing()) return;
  write_event(category, name,
              fmt::format("\"ph\":\"X\",\"ts\":{:.3f},\"dur\":{:.3f}", microseconds(start_ns),
                          microseconds(monotonic_ns() - start_ns)),
              args);
}

void trace_instant(std::string_view category, std::string_view name,
                   std::initializer_list<TraceArg> args) {
  if (!tracing()) return;
  write_event(category, name,
              fmt::format("\"ph\":\"i\",\"s\":\"t\",\"ts\":{:.3f}", microseconds(monotonic_ns())),
              args);
}

void flush_trace() {
  if (!tracing()) return;
  Trace& t = trace();
  std::lock_guard lock(t.mutex);
  const NoFileSizeSignal quiet;
  if (t.file) t.note(std::fflush(t.file) == 0);
}

}  // namespace plugrad
