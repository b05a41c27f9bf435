// The file of a trace: gzip members, of which the oldest events go when it reaches its limit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::trace {

/// The error of a file that its definitions alone fill up to the limit.
inline constexpr int kFullOfDefinitions = -2;

/// Not thread-safe. An error of writing is kept and ends the writing.
class TraceFile {
 public:
  TraceFile() = default;
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  /// Opens the file; another name ending in the process's number if a running process writes it.
  /// Returns an error number, kNotRegular for what is no regular file, or 0. Definitions are never
  /// dropped and the newest events stay, so the file may exceed the limit by a quarter, or by one
  /// member where that is more.
  int open(const std::string& path, std::uint64_t limit_bytes);
  bool is_open() const { return descriptor_ >= 0; }
  /// Where it is, links followed.
  const std::string& path() const { return path_; }
  bool has_other_name() const { return has_other_name_; }

  /// Appends whole lines as one member. `events`: how many events are in it, if it may be dropped.
  void write(std::string_view lines, bool may_be_dropped, std::uint64_t events = 0);
  /// The first error of writing: an error number or kFullOfDefinitions; 0: none.
  int error() const { return error_; }
  std::uint64_t dropped_events() const { return dropped_events_; }
  /// What is written after this drops nothing: the last line counts what was dropped.
  void lift_limit() { limit_bytes_ = 0; }
  void close();

 private:
  struct Member {
    std::uint64_t offset, size;
    bool may_be_dropped;
    std::uint64_t events;
  };
  void append(std::string_view bytes);
  std::uint64_t room_for_events() const;
  void drop_old();

  int descriptor_ = -1;
  std::string path_;
  std::uint64_t limit_bytes_ = 0, size_bytes_ = 0, definition_bytes_ = 0, dropped_events_ = 0;
  std::vector<Member> members_;
  int error_ = 0;
  bool has_other_name_ = false;
};

/// One gzip member that holds `text`.
std::string gzip(std::string_view text);

}  // namespace plugrad::trace
