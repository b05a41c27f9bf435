#include "conformance/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace plugrad::conformance {
namespace {

constexpr int kMostDepth = 32;

class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void refuse_file(const std::string& path, const char* what, std::string_view why) {
  throw std::runtime_error(fmt::format("{} cannot be {}: {}", path, what, why));
}

int open_to_read(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

uint64_t checked_size(const OpenFile& file, const std::string& path, uint64_t most_bytes) {
  struct stat facts{};
  if (file.get() < 0 || ::fstat(file.get(), &facts) != 0)
    refuse_file(path, "read", std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) refuse_file(path, "read", "it is not a regular file");
  const auto size = static_cast<uint64_t>(facts.st_size);
  if (size > most_bytes)
    refuse_file(path, "read",
                fmt::format("it has {} bytes, at most {} are allowed", size, most_bytes));
  return size;
}

}  // namespace

MappedFile::MappedFile(const std::string& path, uint64_t most_bytes) {
  const OpenFile file(open_to_read(path));
  const uint64_t size = checked_size(file, path, most_bytes);
  if (size == 0) return;  // which mmap refuses
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) refuse_file(path, "read", std::strerror(errno));
  bytes_ = {static_cast<const char*>(memory), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

std::string read_whole_file(const std::string& path, uint64_t most_bytes) {
  const OpenFile file(open_to_read(path));
  const uint64_t size = checked_size(file, path, most_bytes);
  std::string text(size, '\0');
  for (size_t have = 0; have < size;) {
    const ssize_t got = ::read(file.get(), text.data() + have, size - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse_file(path, "read", std::strerror(errno));
    if (got == 0) text.resize(have);
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  return text;
}

void write_whole_file(const std::string& path, std::string_view text) {
  const OpenFile file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0600));
  if (file.get() < 0) refuse_file(path, "written", std::strerror(errno));
  while (!text.empty()) {
    const ssize_t put = ::write(file.get(), text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      const int error = errno;
      ::unlink(path.c_str());
      refuse_file(path, "written", std::strerror(error));
    }
    text.remove_prefix(static_cast<size_t>(put));
  }
}

bool nests_too_deep(std::string_view json) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    if (quoted && json[i] == '\\')
      ++i;
    else if (json[i] == '"')
      quoted = !quoted;
    else if (!quoted && (json[i] == '[' || json[i] == '{') && ++depth > kMostDepth)
      return true;
    else if (!quoted && (json[i] == ']' || json[i] == '}'))
      --depth;
  }
  return false;
}

}  // namespace plugrad::conformance
