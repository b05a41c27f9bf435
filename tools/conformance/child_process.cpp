#include "child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "interruption.h"

namespace plugrad::tools {
namespace {

constexpr size_t kMostErrors = 4096;
constexpr int kLookMs = 100;  // between looks for an interruption

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    close(read);
    close_write();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_write() {
    if (write >= 0) close(std::exchange(write, -1));
  }
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// Only what is allowed between fork and exec. The pipes' own numbers lie above those they get.
[[noreturn]] void become(char* const* arguments, char* const* environment, int result, int errors) {
  setpgid(0, 0);
  dup2(errors, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  dup2(result, kChildResult);
  execve("/proc/self/exe", arguments, environment);
  _exit(127);
}

pid_t start(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
            const Pipe& result, const Pipe& errors) {
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), "plugrad");
  const std::vector<char*> argument_pointers = pointers(words),
                           environment_pointers = pointers(environment);
  // dup2 onto itself would leave close-on-exec set.
  const int high = fcntl(result.write, F_DUPFD_CLOEXEC, 10);
  if (high < 0) fail("fcntl");
  const pid_t child = fork();
  if (child == 0) become(argument_pointers.data(), environment_pointers.data(), high, errors.write);
  close(high);
  if (child < 0) fail("fork");
  return child;
}

// False at the end of the file.
bool read_some(int file, std::string& text) {
  char buffer[4096];
  const ssize_t size = read(file, buffer, sizeof buffer);
  if (size > 0) text.append(buffer, static_cast<size_t>(size));
  return size > 0 || (size < 0 && errno == EINTR);
}

// False when the time is over, or the run was interrupted.
bool collect(const Pipe& result, const Pipe& errors, double seconds, ChildOutcome& outcome) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  pollfd files[] = {{result.read, POLLIN, 0}, {errors.read, POLLIN, 0}};
  while (files[0].fd >= 0 || files[1].fd >= 0) {
    const std::chrono::duration<double, std::milli> left = end - Clock::now();
    if (left.count() <= 0 || is_interrupted()) return false;
    const int wait_ms = std::min(static_cast<int>(left.count()) + 1, kLookMs);
    if (poll(files, 2, wait_ms) < 0 && errno != EINTR) fail("poll");
    if (files[0].revents && !read_some(result.read, outcome.output)) files[0].fd = -1;
    if (files[1].revents && !read_some(errors.read, outcome.errors)) files[1].fd = -1;
    if (outcome.errors.size() > 2 * kMostErrors)
      outcome.errors.erase(0, outcome.errors.size() - kMostErrors);
    files[0].revents = files[1].revents = 0;
  }
  return true;
}

}  // namespace

ChildOutcome run_child(const std::vector<std::string>& arguments,
                       const std::vector<std::string>& environment, double seconds) {
  Pipe result, errors;
  const pid_t child = start(arguments, environment, result, errors);
  result.close_write();
  errors.close_write();
  ChildOutcome outcome;
  const bool in_time = collect(result, errors, seconds, outcome);
  // The child leads a group of its own: what a plugin started ends with it.
  kill(-child, SIGKILL);
  if (!in_time) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (outcome.errors.size() > kMostErrors)
    outcome.errors.erase(0, outcome.errors.size() - kMostErrors);
  outcome.end = !in_time              ? ChildOutcome::End::TimedOut
                : WIFSIGNALED(status) ? ChildOutcome::End::Signalled
                                      : ChildOutcome::End::Exited;
  outcome.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return outcome;
}

}  // namespace plugrad::tools
