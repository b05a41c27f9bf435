#include "base/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "base/file.h"

namespace plugrad {
namespace {

[[noreturn]] void fail_in_child(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// The file actions and attributes of one spawn.
class Spawn {
 public:
  explicit Spawn(const ProcessSpec& spec) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    if (spec.leads_group) posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);
    int highest = STDERR_FILENO;
    for (const auto& [ours, theirs] : spec.descriptors) highest = std::max(highest, theirs);
    for (const auto& [ours, theirs] : spec.descriptors) {
      if (ours < 0) {
        posix_spawn_file_actions_addopen(&actions_, theirs, "/dev/null", O_RDWR, 0);
        continue;
      }
      // One of ours may have the number that another gets there.
      moved_.emplace_back(fcntl(ours, F_DUPFD_CLOEXEC, highest + 1));
      if (!moved_.back()) fail_in_child(errno, spec.program);
      posix_spawn_file_actions_adddup2(&actions_, moved_.back().get(), theirs);
    }
    posix_spawn_file_actions_addclosefrom_np(&actions_, highest + 1);
  }
  ~Spawn() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  Spawn(const Spawn&) = delete;
  Spawn& operator=(const Spawn&) = delete;

  pid_t run(const ProcessSpec& spec) {
    std::vector<std::string> words = spec.arguments;
    words.insert(words.begin(), spec.program);
    pid_t child = -1;
    const int error =
        posix_spawnp(&child, spec.program.c_str(), &actions_, &attributes_, pointers(words).data(),
                     spec.environment.empty() ? environ : pointers(spec.environment).data());
    if (error != 0) fail_in_child(error, spec.program);
    return child;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  std::vector<FileDescriptor> moved_;
};

}  // namespace

ChildProcess::ChildProcess(const ProcessSpec& spec)
    : pid_(Spawn(spec).run(spec)), leads_group_(spec.leads_group) {}

ChildProcess::~ChildProcess() {
  if (status_) return;
  if (leads_group_) kill_group();
  signal(SIGKILL);
  wait();
}

void ChildProcess::signal(int number) const {
  if (!status_) kill(pid_, number);
}

void ChildProcess::kill_group() const {
  kill(-pid_, SIGKILL);
}

std::optional<int> ChildProcess::status() {
  int status = 0;
  if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_;
}

int ChildProcess::wait() {
  int status = 0;
  while (!status_) {
    const pid_t done = waitpid(pid_, &status, 0);
    if (done == pid_ || errno != EINTR) status_ = status;  // or a SIGCHLD handler has reaped it
  }
  return *status_;
}

std::vector<std::string> environment_with(const std::vector<std::string>& added) {
  std::vector<std::string> all = added;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view old = *entry, name = old.substr(0, old.find('=') + 1);
    if (std::ranges::none_of(added, [&](const std::string& one) { return one.starts_with(name); }))
      all.emplace_back(old);
  }
  return all;
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

std::string output_of(ProcessSpec spec) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail_in_child(errno, spec.program);
  const FileDescriptor ours(ends[0]);
  FileDescriptor theirs(ends[1]);
  spec.descriptors.emplace_back(theirs.get(), STDOUT_FILENO);
  ChildProcess child(spec);
  theirs = FileDescriptor();
  std::string text;
  char part[4096];
  for (;;) {
    const ssize_t size = read(ours.get(), part, sizeof part);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(part, static_cast<size_t>(size));
  }
  if (const int status = child.wait(); status != 0)
    throw std::runtime_error(fmt::format("{} {} failed with {}", spec.program,
                                         fmt::join(spec.arguments, " "), describe_end(status)));
  return text;
}

std::string program_beside(std::string_view name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

}  // namespace plugrad
