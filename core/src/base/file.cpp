// Implements file access with POSIX: open, read, mmap.
#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"

namespace plugrad {
FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

namespace {

std::nullopt_t failed_with(int error) {
  errno = error;
  return std::nullopt;
}

}  // namespace

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

FileDescriptor open_regular_file(const std::string& path) {
  // O_NONBLOCK: opening a FIFO would otherwise wait for a writer.
  FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info;
  if (!fd || fstat(fd.get(), &info) != 0) return FileDescriptor();
  if (S_ISREG(info.st_mode)) return fd;
  errno = S_ISDIR(info.st_mode) ? EISDIR : ENOTSUP;
  return FileDescriptor();
}

std::optional<std::vector<std::byte>> read_file(const std::string& path, std::uint64_t most_bytes) {
  const FileDescriptor fd = open_regular_file(path);
  struct stat info;
  if (!fd || fstat(fd.get(), &info) != 0) return std::nullopt;
  if (static_cast<std::uint64_t>(info.st_size) > most_bytes) return failed_with(EFBIG);
  std::vector<std::byte> bytes(static_cast<std::size_t>(info.st_size));
  std::size_t have = 0;
  while (true) {
    if (have > most_bytes) return failed_with(EFBIG);
    if (have == bytes.size()) bytes.resize(have + 4096);  // sizes of /proc read as 0
    ssize_t got = read(fd.get(), bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

std::optional<std::vector<std::string>> names_in_folder(const std::string& path) {
  const auto close = [](DIR* folder) { closedir(folder); };
  const std::unique_ptr<DIR, decltype(close)> folder(opendir(path.c_str()));
  if (!folder) return std::nullopt;
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(folder.get())) {
    names.emplace_back(entry->d_name);
    errno = 0;
  }
  if (errno != 0) return std::nullopt;
  std::erase_if(names, [](const std::string& name) { return name == "." || name == ".."; });
  std::ranges::sort(names);  // the file system's order is arbitrary
  return names;
}

MappedFile::MappedFile(const std::string& path, const std::string& operation) : path_(path) {
  auto refuse = [&](int error) {
    fail(ErrorKind::User, "[{}] cannot open {}: {}", operation, path, file_error_text(error));
  };
  const FileDescriptor fd = open_regular_file(path);
  struct stat info;
  if (!fd || fstat(fd.get(), &info) != 0) refuse(errno);
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ == 0) return;
  void* data = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) refuse(errno);
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<std::byte*>(data_), size_);
}

CopiedFile::CopiedFile(const std::string& path, const std::string& operation) {
  const auto refuse = [&](int error) {
    if (data_) munmap(data_, mapped_);
    fail(ErrorKind::User, "[{}] cannot read {}: {}", operation, path, file_error_text(error));
  };
  const FileDescriptor fd = open_regular_file(path);
  struct stat info;
  if (!fd || fstat(fd.get(), &info) != 0) refuse(errno);
  mapped_ = static_cast<std::size_t>(info.st_size);
  if (mapped_ == 0) return;
  void* data = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) refuse(errno);
  data_ = static_cast<std::byte*>(data);
  madvise(data_, mapped_, MADV_HUGEPAGE);  // an advice: systems without it still work
  while (size_ < mapped_) {
    const ssize_t got = read(fd.get(), data_ + size_, mapped_ - size_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(errno);
    if (got == 0) break;  // the file became shorter meanwhile
    size_ += static_cast<std::size_t>(got);
  }
}

CopiedFile::~CopiedFile() {
  if (data_) munmap(data_, mapped_);
}

}  // namespace plugrad
