#include "runtime/discovery/regular_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace plugrad::runtime {
namespace {

bool read_at(int fd, std::uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    ssize_t got = pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace

std::optional<RegularFile> RegularFile::open(const std::string& path, std::string& reason) {
  struct stat info;
  // Opening a FIFO waits for a writer, so its type is checked first; O_NONBLOCK handles a change in
  // between.
  if (stat(path.c_str(), &info) != 0) {
    reason = std::strerror(errno);
    return std::nullopt;
  }
  RegularFile file;
  if (S_ISREG(info.st_mode))
    file.fd_ = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!S_ISREG(info.st_mode) ||
      (file.fd_ && fstat(file.fd_.get(), &info) == 0 && !S_ISREG(info.st_mode))) {
    reason = S_ISDIR(info.st_mode) ? "it is a directory, not a file" : "it is not a regular file";
    return std::nullopt;
  }
  if (!file.fd_) {
    reason = std::strerror(errno);
    return std::nullopt;
  }
  file.size_ = static_cast<std::uint64_t>(info.st_size);
  return file;
}

ByteSource RegularFile::bytes() const {
  return {size_, [fd = fd_.get()](std::uint64_t offset, std::span<std::byte> out) {
            return read_at(fd, offset, out);
          }};
}

std::optional<std::string> RegularFile::text(std::uint64_t most_bytes, std::string& reason) const {
  if (size_ > most_bytes) {
    reason = fmt::format("it has {} bytes, more than the {} that are allowed", size_, most_bytes);
    return std::nullopt;
  }
  std::string out(size_, '\0');
  if (read_at(fd_.get(), 0, std::as_writable_bytes(std::span(out)))) return out;
  reason = "it could not be read to its end";
  return std::nullopt;
}

}  // namespace plugrad::runtime
