// Whole files: read, map, replace. Failures are values here; callers know what to say about them.
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

/// A regular file, open for reading; none, with errno set, for any other: EISDIR for a folder,
/// ENOTSUP for a pipe, device or socket. Never waits for a writer.
FileDescriptor open_regular_file(const std::string& path);

/// More than any file of ours has, and less than a process can always allocate.
inline constexpr std::uint64_t kMostFileBytes = std::uint64_t{1} << 30;

/// All bytes of a regular file; nothing, with errno set, where open_regular_file gives none, and
/// EFBIG where it has more than `most_bytes`, for which no memory is taken.
std::optional<std::vector<std::byte>> read_file(const std::string& path,
                                                std::uint64_t most_bytes = kMostFileBytes);

/// Names in a folder, sorted; nothing, with errno set, where it cannot be read. Unlike iterators of
/// std::filesystem it throws where there is no memory, and does not end the process.
std::optional<std::vector<std::string>> names_in_folder(const std::string& path);

/// The error of replace_file and MappedFile for a path that is not a regular file.
inline constexpr int kNotRegular = -1;
/// The text of an errno or of kNotRegular, which is that of open_regular_file's ENOTSUP too.
std::string file_error_text(int error);

struct ReplaceOptions {
  bool follow_links = true;  // a symbolic link stays, its target is replaced
  bool sync = true;          // file and folder reach the disk before the call returns
};

/// Writes `parts` one after the other to a new file beside `path` and renames it: readers see the
/// old file or the whole new one. A replaced file's permissions stay. 0, or the errno of what
/// failed or kNotRegular; then nothing is left behind. Temporary files of dead writers are removed.
int replace_file(const std::string& path, std::span<const std::span<const std::byte>> parts,
                 ReplaceOptions options = {});

/// The error with which replace_file would fail before it writes a byte; 0 where it would write.
/// Nothing is left behind: for what is found out before long work.
int check_replaceable(const std::string& path);

/// Whether `path` is a temporary file of replace_file whose writer lives. One whose writer is dead
/// is removed.
bool is_being_written(const std::string& path);

/// Bytes written while it lives end in EFBIG at the limit of file sizes, without SIGXFSZ. Only the
/// calling thread's signal mask changes.
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

/// A file mapped for reading; pages come in when touched. The bytes of an empty file are an empty
/// span.
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

}  // namespace plugrad
