// POSIX underneath: open, read, write, mmap, rename.
#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/check.h"

namespace plugrad {
namespace {

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

// Unique among the threads and processes that share a directory.
std::string temporary_beside(const std::string& path) {
  static std::atomic<std::uint64_t> counter{0};
  return fmt::format("{}.{}-{}.tmp", path, getpid(), counter.fetch_add(1));
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

std::optional<std::vector<std::byte>> read_file(const std::string& path) {
  FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (!fd || fstat(fd.get(), &info) != 0) return std::nullopt;
  if (S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    return std::nullopt;
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(info.st_size));
  std::size_t have = 0;
  while (true) {
    if (have == bytes.size()) bytes.resize(have + 4096);  // sizes of pipes and /proc read as 0
    ssize_t got = read(fd.get(), bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

int replace_file(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  std::string temporary = temporary_beside(path);
  FileDescriptor fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd) return errno;
  bool good = true;
  for (std::span<const std::byte> part : parts) good = good && write_all(fd.get(), part);
  if (good && rename(temporary.c_str(), path.c_str()) == 0) return 0;
  int error = errno;
  unlink(temporary.c_str());
  return error;
}

MappedFile::MappedFile(const std::string& path, const std::string& operation) : path_(path) {
  auto refuse = [&](int error) {
    fail(ErrorKind::User, "[{}] cannot open {}: {}", operation, path, std::strerror(error));
  };
  FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (!fd || fstat(fd.get(), &info) != 0) refuse(errno);
  if (S_ISDIR(info.st_mode)) refuse(EISDIR);
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ == 0) return;
  void* data = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) refuse(errno);
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace plugrad
