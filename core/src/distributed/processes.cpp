#include "distributed/processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>

#include "base/file.h"

namespace plugrad::distributed {
namespace {

std::atomic<pid_t> guarded_thread{0};
std::atomic<bool> guarded_thread_aborted{false};
struct sigaction action_before;

void on_abort(int number) {
  if (::gettid() == guarded_thread.load(std::memory_order_relaxed)) {
    guarded_thread_aborted.store(true, std::memory_order_release);
    for (;;) ::pause();
  }
  ::sigaction(number, &action_before, nullptr);
  ::raise(number);
}

// The text of a small file of /proc; read_file() takes regular files with a size only.
std::string read_text(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t size = file ? ::read(file.get(), text, sizeof text) : -1;
  return std::string(text, size > 0 ? static_cast<std::size_t>(size) : 0);
}

}  // namespace

ProcessPlace own_place() {
  std::error_code error;  // without /proc all places are unknown
  const auto pids = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  const std::string boot = read_text("/proc/sys/kernel/random/boot_id");
  if (error || boot.empty()) return {};
  return {.machine = fmt::format("{} {}", boot.substr(0, boot.find('\n')), pids.string()),
          .pid = ::getpid()};
}

Liveness liveness(const ProcessPlace& here, const ProcessPlace& there) {
  if (here.machine.empty() || here.machine != there.machine) return Liveness::Unknown;
  const std::string stat = read_text(fmt::format("/proc/{}/stat", there.pid));
  if (stat.empty())
    return ::kill(there.pid, 0) != 0 && errno == ESRCH ? Liveness::HasEnded : Liveness::Unknown;
  const std::size_t name_end = stat.rfind(')');  // the name may have spaces and parentheses
  const char state = name_end + 2 < stat.size() ? stat[name_end + 2] : '?';
  if (state == 'Z' || state == 'X') return Liveness::HasEnded;
  return state == 'T' ? Liveness::IsStopped : Liveness::Runs;
}

void survive_aborts_of_this_thread() {
  guarded_thread = ::gettid();
  struct sigaction action{};
  action.sa_handler = on_abort;
  action.sa_flags = SA_NODEFER;
  ::sigaction(SIGABRT, &action, &action_before);
}

bool has_aborted() {
  return guarded_thread_aborted.load(std::memory_order_acquire);
}

}  // namespace plugrad::distributed
