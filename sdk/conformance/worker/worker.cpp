#include "conformance/worker/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "conformance/worker/crash_report.h"
#include "conformance/worker/output.h"
#include "conformance/worker/spawn.h"

namespace plugrad::conformance {
namespace {

using namespace std::chrono_literals;

// Descriptors of the worker: worker_main.cpp knows the same numbers.
constexpr int kChannelFile = 3, kCrashPipe = 4;

std::string read_pipe(int pipe) {
  std::string text;
  char part[4096];
  for (ssize_t got; (got = ::read(pipe, part, sizeof part)) > 0;) text.append(part, got);
  return text;
}

}  // namespace

std::string Ending::describe() const {
  if (interrupted) return "was interrupted";
  if (timed_out) return "did not return within its time limit";
  if (signal) return "crashed with " + signal_name(signal);
  return "ended the process with exit(" + std::to_string(exit_code) + ")";
}

Worker::Worker(WorkerTarget target) : target_(std::move(target)), channel_(Channel::create()) {
  start();
}

void Worker::start() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe for the worker");
  const int writer = ::fcntl(ends[1], F_DUPFD_CLOEXEC, 10);
  ::close(ends[1]);
  crash_pipe_ = ends[0];
  ::fcntl(crash_pipe_, F_SETFL, O_NONBLOCK);
  printed_file_ = make_output_file();
  process_ = spawn({.words = {target_.program, std::to_string(::getpid())},
                    .output = printed_file_,
                    .files = {{channel_.file(), kChannelFile}, {writer, kCrashPipe}},
                    .leads_group = true});
  ::close(writer);
}

Worker::~Worker() {
  if (alive()) {
    ::kill(-process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  if (printed_file_ >= 0) ::close(printed_file_);
  if (crash_pipe_ >= 0) ::close(crash_pipe_);
}

std::string Worker::open(std::chrono::nanoseconds limit) {
  const nlohmann::json request = {{"plugin", target_.plugin_path},
                                  {"device_index", target_.device_index},
                                  {"device_options", target_.device_options},
                                  {"plugin_options", target_.plugin_options}};
  const std::optional<Message> reply = ask(Request::Open, request.dump(), {}, limit);
  return reply ? reply->text : "opening it " + ending_.describe();
}

std::optional<Message> Worker::ask(Request kind, std::string_view text,
                                   std::span<const std::byte> bytes,
                                   std::chrono::nanoseconds limit) {
  channel_.put(text, bytes);
  channel_.set_kernel({});
  if (!exchange(kind, limit)) return std::nullopt;
  return channel_.take();
}

bool Worker::exchange(Request kind, std::chrono::nanoseconds limit) {
  using Clock = std::chrono::steady_clock;
  if (!alive()) return false;
  const auto deadline = Clock::now() + limit;
  const uint32_t before = channel_.answered().value();
  channel_.kind() = kind;
  channel_.asked().ring(before + 1);
  while (!channel_.answered().wait(before, 10ms)) {
    if (has_ended()) return false;
    ending_.interrupted = target_.interrupted && target_.interrupted();
    ending_.timed_out = !ending_.interrupted && Clock::now() >= deadline;
    if (!ending_.interrupted && !ending_.timed_out) continue;
    end_with_stack();
    return false;
  }
  return true;
}

bool Worker::has_ended() {
  int status = 0;
  if (::waitpid(process_, &status, WNOHANG) != process_) return false;
  bury(status);
  return true;
}

// SIGABRT first: its handler writes down where the worker is.
void Worker::end_with_stack() {
  ::kill(process_, SIGABRT);
  for (int i = 0; i < 50; ++i) {
    if (has_ended()) return;
    std::this_thread::sleep_for(10ms);
  }
  ::kill(-process_, SIGKILL);
  int status = 0;
  ::waitpid(process_, &status, 0);
  bury(status);
}

void Worker::bury(int status) {
  ::kill(-process_, SIGKILL);  // what it started
  process_ = -1;
  ending_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  ending_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  ending_.stack = readable_stack(read_pipe(crash_pipe_));
  ending_.printed = printed();
}

std::string Worker::printed() const {
  return read_output(printed_file_);
}

}  // namespace plugrad::conformance
