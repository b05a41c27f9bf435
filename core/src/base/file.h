// Reads, maps and replaces whole files. Failures are return values: callers word the errors.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace plugrad {

/// Owns a file descriptor.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor();
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

/// Opens a regular file for reading. None, with errno set, for anything else: EISDIR for a folder,
/// ENOTSUP for a pipe, device or socket. Never waits for a writer.
FileDescriptor open_regular_file(const std::string& path);

/// Larger than any file of ours, and small enough to allocate.
inline constexpr std::uint64_t kMostFileBytes = std::uint64_t{1} << 30;

/// All bytes of a regular file. Nothing, with errno set, as open_regular_file(); EFBIG for more
/// than `most_bytes`, before allocating memory for them.
std::optional<std::vector<std::byte>> read_file(const std::string& path,
                                                std::uint64_t most_bytes = kMostFileBytes);

/// Names in a folder, sorted; nothing, with errno set, if it cannot be read. Unlike iterators of
/// std::filesystem, it throws when out of memory instead of ending the process.
std::optional<std::vector<std::string>> names_in_folder(const std::string& path);

/// The error of replace_file and MappedFile for a path that is not a regular file.
inline constexpr int kNotRegular = -1;
/// The text of an errno or of kNotRegular, whose text ENOTSUP has too.
std::string file_error_text(int error);

struct ReplaceOptions {
  bool follow_links = true;  // a symbolic link stays; its target is replaced
  bool sync = true;          // file and folder reach the disk before the call returns
};

/// Writes the concatenated `parts` to a new file beside `path` and renames it: readers see either
/// the old file or the whole new one. Keeps the permissions of a replaced file. Returns 0, or an
/// errno or kNotRegular after removing the new file. Removes temporary files of dead writers.
int replace_file(const std::string& path, std::span<const std::span<const std::byte>> parts,
                 ReplaceOptions options = {});

/// The error with which replace_file would fail before writing; 0 if it would write. Leaves no file
/// behind. Call it before long work whose result is to be written.
int check_replaceable(const std::string& path);

/// Whether `path` is a temporary file of replace_file with a live writer; removes one whose writer
/// is dead.
bool is_being_written(const std::string& path);

/// During its lifetime, exceeding the file size limit fails with EFBIG instead of raising SIGXFSZ.
/// Changes only the calling thread's signal mask.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal();
  ~NoFileSizeSignal();
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;

 private:
  sigset_t before_;
  bool was_pending_ = false;
};

/// The folder that holds `path`, by its text alone; "." for a bare name.
std::string folder_of(const std::string& path);

/// A file mapped for reading; pages are loaded on access. An empty file has an empty span.
class MappedFile {
 public:
  /// Errors: User, "[operation] cannot open path: reason".
  MappedFile(const std::string& path, const std::string& operation);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A file's bytes at the time of construction, in memory that few page faults fill.
class CopiedFile {
 public:
  /// Errors: User, "[operation] cannot read path: reason".
  CopiedFile(const std::string& path, const std::string& operation);
  ~CopiedFile();
  CopiedFile(const CopiedFile&) = delete;
  CopiedFile& operator=(const CopiedFile&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0, mapped_ = 0;
};

}  // namespace plugrad
