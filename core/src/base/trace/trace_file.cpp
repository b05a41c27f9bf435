#include "base/trace/trace_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "base/file.h"

namespace plugrad::trace {
namespace {

// A file without old events, until it takes the trace's name.
constexpr const char* kBeside = ".plugrad-new";

// Takes the file for this process. -1 with errno, EWOULDBLOCK if another process has it.
int open_locked(const std::string& path, int more_flags = 0) {
  // Nonblocking: opening a FIFO would wait for a reader.
  const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | more_flags;
  const int descriptor = ::open(path.c_str(), flags, 0666);
  if (descriptor < 0) return -1;
  struct stat info;
  int error = 0;
  if (::fstat(descriptor, &info) != 0)
    error = errno;
  else if (!S_ISREG(info.st_mode))
    error = kNotRegular;
  else if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0)
    error = errno == EWOULDBLOCK ? EWOULDBLOCK : 0;  // a file system without locks
  if (error == 0 && ::ftruncate(descriptor, 0) != 0) error = errno;
  if (error == 0) return descriptor;
  ::close(descriptor);
  errno = error;
  return -1;
}

}  // namespace

std::string gzip(std::string_view text) {
  constexpr int kGzip = 15 + 16;  // the window's bits; 16 asks for gzip's header
  constexpr int kLevel = 3;       // of 9: twice as fast as the default, files 10% larger
  z_stream stream{};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw std::runtime_error("[trace] zlib failed");
  return out;
}

TraceFile::~TraceFile() {
  close();
}

int TraceFile::open(const std::string& path, std::uint64_t limit_bytes) {
  path_ = path;
  limit_bytes_ = limit_bytes;
  struct stat info;
  if (::stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return S_ISDIR(info.st_mode) ? EISDIR : kNotRegular;
  descriptor_ = open_locked(path_);
  if (descriptor_ < 0 && errno == EWOULDBLOCK) {
    has_other_name_ = true;
    path_ += "." + std::to_string(::getpid());
    descriptor_ = open_locked(path_);
  }
  if (descriptor_ < 0) return errno;
  // Links are followed, as a file without old events is renamed over this one.
  std::error_code unknown;
  const auto target =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor_), unknown);
  if (!unknown) path_ = target.string();
  ::unlink((path_ + kBeside).c_str());  // of a process that was killed in drop_old()
  return 0;
}

void TraceFile::append(std::string_view bytes) {
  const NoFileSizeSignal quiet;
  while (!bytes.empty() && error_ == 0) {
    const ssize_t written =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(size_bytes_));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      error_ = written == 0 ? ENOSPC : errno;
      return;
    }
    size_bytes_ += static_cast<std::uint64_t>(written);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void TraceFile::write(std::string_view lines, bool may_be_dropped, std::uint64_t events) {
  if (!is_open() || error_ != 0) return;
  const std::string member = gzip(lines);
  members_.push_back({size_bytes_, member.size(), may_be_dropped, events});
  append(member);
  if (!may_be_dropped) definition_bytes_ += member.size();
  if (limit_bytes_ == 0 || error_ != 0) return;
  if (definition_bytes_ > limit_bytes_)
    error_ = kFullOfDefinitions;
  else if (size_bytes_ - definition_bytes_ > room_for_events())
    drop_old();
}

// Where definitions nearly fill the file, a quarter of the limit, so that not every write copies
// the whole file.
std::uint64_t TraceFile::room_for_events() const {
  return std::max(limit_bytes_ - definition_bytes_, limit_bytes_ / 4);
}

// Keeps all definitions and the newest events that fill half of their room, in a new file that
// takes the old one's name and permissions.
void TraceFile::drop_old() {
  std::uint64_t kept_bytes = 0;
  std::vector<Member> kept;
  for (auto member = members_.rbegin(); member != members_.rend(); ++member) {
    const bool fits = kept_bytes == 0 || kept_bytes + member->size <= room_for_events() / 2;
    const bool stays = !member->may_be_dropped || fits;
    if (stays)
      kept.push_back(*member);
    else
      dropped_events_ += member->events;
    if (member->may_be_dropped) kept_bytes += member->size;
  }
  std::reverse(kept.begin(), kept.end());
  const std::string beside = path_ + kBeside;
  const int old = descriptor_;
  ::unlink(beside.c_str());
  const int fresh = open_locked(beside, O_EXCL);
  struct stat info;
  if (fresh < 0 || ::fstat(old, &info) != 0 || ::fchmod(fresh, info.st_mode & 0777) != 0) {
    error_ = errno;
    if (fresh >= 0) ::close(fresh);
    return;
  }
  descriptor_ = fresh;
  size_bytes_ = 0;
  std::string bytes;
  for (Member& member : kept) {
    bytes.resize(member.size);
    const ssize_t got = ::pread(old, bytes.data(), bytes.size(), static_cast<off_t>(member.offset));
    if (got != static_cast<ssize_t>(bytes.size())) error_ = EIO;
    member.offset = size_bytes_;
    append(bytes);
  }
  if (error_ == 0 && std::rename(beside.c_str(), path_.c_str()) != 0) error_ = errno;
  if (error_ != 0) ::unlink(beside.c_str());
  ::close(old);
  members_ = std::move(kept);
}

void TraceFile::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace plugrad::trace
