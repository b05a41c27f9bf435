// The file of calls that the record layer writes and `plugrad replay` repeats.
//   file  := "PGRREC01" chunk*
//   chunk := json_bytes (u32, little-endian), 0 (u32), data_bytes (u64), JSON text, data
// The JSON's key "call" names the call; docs/debugging-a-plugin.md lists the calls and their keys.
// The last chunk is the call "end": without it, the file was cut off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "base/file.h"

namespace plugrad::runtime {

/// Thread-safe. A write that fails ends the recording with one warning; the program goes on. A forked
/// child writes nothing. The file of a program that crashes has all calls up to its last launch.
class RecordingWriter {
 public:
  /// Errors: User if the file cannot be written.
  RecordingWriter(const std::string& path, const std::string& device);
  ~RecordingWriter();  // writes the end
  RecordingWriter(const RecordingWriter&) = delete;
  RecordingWriter& operator=(const RecordingWriter&) = delete;

  void write(const nlohmann::json& call, std::span<const std::byte> data = {});
  void finish();
  const std::string& path() const { return path_; }

 private:
  bool is_open() const;
  void append(const nlohmann::json& call, std::span<const std::byte> data);
  void add(std::span<const std::byte> bytes);
  void write_now(std::span<const std::byte> bytes);
  void flush();

  const std::string path_;
  const int process_;
  std::mutex mutex_;
  FileDescriptor file_;
  std::vector<std::byte> waiting_;  // for the file
  uint64_t calls_ = 0;
};

/// One call of a recording; `data` lies in the mapped file.
struct RecordedCall;

class RecordingReader {
 public:
  /// Errors: User for a file that cannot be read, is no recording, or is one of another version.
  explicit RecordingReader(const std::string& path);
  ~RecordingReader();
  /// The next call; false behind the last. Errors: User for a damaged chunk.
  bool next(RecordedCall& out);
  /// Whether the file ended without "end".
  bool is_cut_off() const { return is_cut_off_; }
  uint64_t calls() const { return calls_; }

 private:
  std::unique_ptr<MappedFile> file_;
  std::size_t at_ = 0;
  uint64_t calls_ = 0;
  bool is_cut_off_ = true, is_over_ = false;
};

}  // namespace plugrad::runtime
