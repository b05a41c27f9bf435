// Replaces files through a temporary file PATH.PID-N.tmp. Its writer holds a lock on it, so that
// other processes, even in other pid namespaces, can tell whether the writer lives.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/file.h"

namespace plugrad {
namespace {

constexpr int kMostLinks = 40;      // the limit of Linux
constexpr int kMostAttempts = 100;  // to create a temporary file
constexpr std::string_view kEnding = ".tmp";

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

// Replaces `path` by the target of its symbolic links, even if the target does not exist.
int follow_links(std::string& path) {
  for (int i = 0; i < kMostLinks; ++i) {
    char target[4096];
    const ssize_t size = readlink(path.c_str(), target, sizeof target);
    if (size < 0) return errno == EINVAL || errno == ENOENT ? 0 : errno;
    if (size == sizeof target) return ENAMETOOLONG;
    std::string to(target, static_cast<std::size_t>(size));
    path = to.starts_with('/') ? to : folder_of(path) + "/" + to;
  }
  return ELOOP;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// Whether the name is "….PID-N.tmp".
bool is_temporary(std::string_view name) {
  if (!name.ends_with(kEnding)) return false;
  name.remove_suffix(kEnding.size());
  const std::size_t dash = name.rfind('-');
  if (dash == name.npos || !is_number(name.substr(dash + 1))) return false;
  name = name.substr(0, dash);
  const std::size_t dot = name.rfind('.');
  return dot != name.npos && is_number(name.substr(dot + 1));
}

// A new temporary file with a lock held; the destructor removes it unless it was renamed.
class Temporary {
 public:
  Temporary(const std::string& path, mode_t mode) {
    static std::atomic<std::uint64_t> counter{0};
    for (int i = 0; i < kMostAttempts; ++i) {
      path_ = fmt::format("{}.{}-{}{}", path, getpid(), counter.fetch_add(1), kEnding);
      fd_ = FileDescriptor(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
      if (!fd_ && errno == EEXIST) continue;  // left by a dead process with the same pid
      if (!fd_) return;
      struct stat info;
      // Before it is locked, another process may have removed it as a dead writer's file.
      const bool is_locked = flock(fd_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
      if (is_locked && fstat(fd_.get(), &info) == 0 && info.st_nlink != 0) return;
    }
    fd_ = FileDescriptor();
    errno = EEXIST;
  }
  ~Temporary() {
    if (fd_ && !is_renamed_) unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  int fd() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  bool rename_to(const std::string& path) {
    return is_renamed_ = rename(path_.c_str(), path.c_str()) == 0;
  }

 private:
  std::string path_;
  FileDescriptor fd_;
  bool is_renamed_ = false;
};

void remove_dead_temporaries(const std::string& path) {
  const std::string folder = folder_of(path);
  const std::string start = path.substr(path.rfind('/') + 1) + ".";
  for (const std::string& name : names_in_folder(folder).value_or(std::vector<std::string>()))
    if (name.starts_with(start)) is_being_written(fmt::format("{}/{}", folder, name));
}

struct Target {
  std::string path;                     // after following links
  std::optional<mode_t> old_mode = {};  // of the regular file to be replaced
};

int find_target(Target& target, ReplaceOptions options) {
  if (options.follow_links)
    if (const int error = follow_links(target.path)) return error;
  struct stat old;
  if (lstat(target.path.c_str(), &old) != 0) return 0;  // creating the file reports the error
  if (S_ISDIR(old.st_mode)) return EISDIR;
  if (!S_ISREG(old.st_mode)) return options.follow_links ? kNotRegular : 0;
  target.old_mode = old.st_mode;
  return 0;
}

// Some file systems cannot sync a folder: EINVAL is no failure.
int sync_folder(const std::string& path) {
  const FileDescriptor fd(open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return errno == EACCES ? 0 : errno;  // a folder may be writable and not readable
  return fsync(fd.get()) == 0 || errno == EINVAL ? 0 : errno;
}

}  // namespace

std::string file_error_text(int error) {
  return error == kNotRegular || error == ENOTSUP
             ? "it is a device, pipe or socket, not a regular file"
             : std::strerror(error);
}

bool is_being_written(const std::string& path) {
  if (!is_temporary(path.substr(path.rfind('/') + 1))) return false;
  const FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  struct stat info;
  if (!fd || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return true;
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return true;
  unlink(path.c_str());
  return false;
}

int check_replaceable(const std::string& asked) {
  Target target{.path = asked};
  if (const int error = find_target(target, {})) return error;
  return Temporary(target.path, 0600) ? 0 : errno;
}

int replace_file(const std::string& asked, std::span<const std::span<const std::byte>> parts,
                 ReplaceOptions options) {
  Target target{.path = asked};
  if (const int error = find_target(target, options)) return error;
  const std::string& path = target.path;
  if (options.sync) remove_dead_temporaries(path);
  const NoFileSizeSignal quiet;
  Temporary temporary(path, 0644);
  if (!temporary) return errno;
  if (target.old_mode) fchmod(temporary.fd(), *target.old_mode & 0777);
  for (std::span<const std::byte> part : parts)
    if (!write_all(temporary.fd(), part)) return errno;
  if (options.sync && fsync(temporary.fd()) != 0) return errno;
  if (!temporary.rename_to(path)) return errno;
  return options.sync ? sync_folder(path) : 0;
}

NoFileSizeSignal::NoFileSizeSignal() {
  sigset_t pending, only;
  sigemptyset(&only);
  sigaddset(&only, SIGXFSZ);
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
  pthread_sigmask(SIG_BLOCK, &only, &before_);
}

// SIGXFSZ is sent to the writing thread, so it is pending here if at all.
NoFileSizeSignal::~NoFileSizeSignal() {
  const int error = errno;
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, SIGXFSZ);
  const timespec at_once{};
  if (!was_pending_)
    while (sigtimedwait(&only, nullptr, &at_once) < 0 && errno == EINTR) {
    }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

}  // namespace plugrad
