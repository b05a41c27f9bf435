#include "child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "base/child_process.h"
#include "base/file.h"
#include "interruption.h"

namespace plugrad::tools {
namespace {

constexpr size_t kMostErrors = 4096;
constexpr int kLookMs = 100;  // between looks for an interruption

[[noreturn]] void fail_to(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

struct Pipe {
  FileDescriptor reader, writer;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail_to("pipe");
    reader = FileDescriptor(ends[0]);
    writer = FileDescriptor(ends[1]);
  }
};

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
  pollfd files[] = {{result.reader.get(), POLLIN, 0}, {errors.reader.get(), POLLIN, 0}};
  while (files[0].fd >= 0 || files[1].fd >= 0) {
    const std::chrono::duration<double, std::milli> left = end - Clock::now();
    if (left.count() <= 0 || is_interrupted()) return false;
    const int wait_ms = std::min(static_cast<int>(left.count()) + 1, kLookMs);
    if (poll(files, 2, wait_ms) < 0 && errno != EINTR) fail_to("poll");
    if (files[0].revents && !read_some(result.reader.get(), outcome.output)) files[0].fd = -1;
    if (files[1].revents && !read_some(errors.reader.get(), outcome.errors)) files[1].fd = -1;
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
  ChildProcess child({.program = "/proc/self/exe",
                      .arguments = arguments,
                      .environment = environment,
                      .descriptors = {{errors.writer.get(), STDOUT_FILENO},
                                      {errors.writer.get(), STDERR_FILENO},
                                      {result.writer.get(), kChildResult}},
                      .leads_group = true});
  result.writer = FileDescriptor();
  errors.writer = FileDescriptor();
  ChildOutcome outcome;
  const bool in_time = collect(result, errors, seconds, outcome);
  child.kill_group();  // also what a plugin started
  const int status = child.wait();
  if (outcome.errors.size() > kMostErrors)
    outcome.errors.erase(0, outcome.errors.size() - kMostErrors);
  outcome.end = !in_time              ? ChildOutcome::End::TimedOut
                : WIFSIGNALED(status) ? ChildOutcome::End::Signalled
                                      : ChildOutcome::End::Exited;
  outcome.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return outcome;
}

}  // namespace plugrad::tools
