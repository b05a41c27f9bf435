#include "runtime/discovery/probe_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>

#include "base/child_process.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/storage/disk_cache.h"
#include "plugrad/plugin_api/plugin.h"
#include "runtime/discovery/file_permissions.h"

namespace plugrad::runtime {
namespace {

constexpr int kFine = 42;  // an exit code that the plugin is unlikely to use

// Suppresses the plugin's output and core dumps, and resets signal handlers.
void keep_quiet() {
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGTERM})
    signal(number, SIG_DFL);
  int sink = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (sink >= 0) dup2(sink, stream);
}

[[noreturn]] void run_child(const std::function<void()>& open, pid_t parent) {
  keep_quiet();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == parent) {
    try {
      open();
    } catch (...) {  // the parent gets the same error and reports it
    }
  }
  _exit(kFine);
}

// Waits for the child to end; false after the time limit.
bool wait_for_child(pid_t child, std::uint32_t limit_ms, int& status) {
  const std::uint64_t end = monotonic_ns() + std::uint64_t{limit_ms} * 1000000;
  FileDescriptor handle(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  while (true) {
    pid_t done = waitpid(child, &status, WNOHANG);
    if (done == child) return true;
    if (done < 0 && errno != EINTR) {  // another SIGCHLD handler has reaped it
      status = kFine << 8;
      return true;
    }
    const std::uint64_t now = monotonic_ns();
    if (now >= end) return false;
    const int left_ms = static_cast<int>((end - now) / 1000000) + 1;
    pollfd waiting{handle.get(), POLLIN, 0};
    poll(&waiting, 1, handle ? left_ms : 1);  // kernels without pidfd_open: poll every ms
  }
}

std::string identity_of(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return "";
  return fmt::format("plugin trial 3/{}.{}/{}/{}/{}/{}/{}.{}/{}.{}", PGR_API_MAJOR, PGR_API_MINOR,
                     path, info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
}

// Separate from the kernel cache, so that counting or clearing kernels does not affect it.
DiskCache outcomes_cache() {
  std::string directory = cache_directory();
  // The kernel cache warns if the directory is not writable.
  if (access(directory.c_str(), W_OK) != 0 && errno != ENOENT) directory.clear();
  return DiskCache(directory.empty() ? "" : directory + "/plugins", Settings().cache_limit_bytes,
                   /*warns=*/false);
}

// The text of an outcome of the last hour. It expires, as load, drivers and clocks change.
std::string remembered(DiskCache& hung, const std::string& key) {
  constexpr std::int64_t kSeconds = 3600;
  const auto found = hung.get(as_bytes(key));
  std::int64_t then = 0;
  if (!found || found->size() != sizeof then) return "";
  std::memcpy(&then, found->data(), sizeof then);
  const std::int64_t age = static_cast<std::int64_t>(time(nullptr)) - then;
  return age < 0 || age >= kSeconds
             ? ""
             : fmt::format("{} min ago; it is tried again an hour after that", age / 60);
}

void remember(DiskCache& hung, const std::string& key) {
  const std::int64_t now = time(nullptr);
  hung.put(as_bytes(key), std::as_bytes(std::span(&now, 1)));
}

std::string no_answer(std::uint32_t limit_ms) {
  return fmt::format("it had not answered after {} s", limit_ms / 1000.0);
}

// The status of a child that has called `open` and ended; nothing if it has not ended in time.
std::optional<int> try_in_child(const std::function<void()>& open, std::uint32_t limit_ms) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) run_child(open, parent);
  if (child < 0) {
    log_line(LogLevel::Debug, fmt::format("no trial of a plugin: fork: {}", std::strerror(errno)));
    return kFine << 8;
  }
  int status = 0;
  if (wait_for_child(child, limit_ms, status)) return status;
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return std::nullopt;
}

bool has_other_threads() {
  std::error_code error;
  const std::filesystem::directory_iterator tasks("/proc/self/task", error);
  return std::distance(begin(tasks), end(tasks)) > 1;
}

}  // namespace

// A lock that another thread held at the fork is never released in the child. Such a child hangs,
// whatever the plugin does, so a second one decides.
std::string outcome_in_child(const std::function<void()>& open, std::uint32_t limit_ms) {
  std::optional<int> status = try_in_child(open, limit_ms);
  if (!status && has_other_threads()) status = try_in_child(open, limit_ms);
  if (!status) return no_answer(limit_ms);
  return *status == kFine << 8 ? "" : "it ended the process with " + describe_end(*status);
}

std::string outcome_in_probe_process(const std::string& path, const std::function<void()>& open,
                                     std::uint32_t limit_ms) {
  if (is_trusted(path)) return "";
  const std::string identity = identity_of(path);
  DiskCache good = outcomes_cache();
  if (good.get(as_bytes(identity))) return "";
  const std::string hung_key = fmt::format("{}/no answer in {} ms", identity, limit_ms);
  if (const std::string when = remembered(good, hung_key); !when.empty())
    return fmt::format("{}, {}", no_answer(limit_ms), when);
  std::string outcome = outcome_in_child(open, limit_ms);
  if (identity.empty()) return outcome;
  if (outcome == no_answer(limit_ms)) remember(good, hung_key);
  if (outcome.empty()) good.put(as_bytes(identity), as_bytes("good"));
  return outcome;
}

}  // namespace plugrad::runtime
