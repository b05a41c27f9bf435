#include "bench/peers/peer_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace plugrad::bench {
namespace {

constexpr int kPatienceMs = 120'000;

}  // namespace

PeerProcess::PeerProcess(std::vector<std::string> words,
                         const std::vector<std::string>& environment) {
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe");
  in_ = FileDescriptor(to[1]);
  out_ = FileDescriptor(from[0]);
  FileDescriptor input(to[0]), output(from[1]);
  try {
    process_.emplace(ProcessSpec{
        .program = words[0],
        .arguments = {words.begin() + 1, words.end()},
        .environment = environment_with(environment),
        .descriptors = {
            {input.get(), STDIN_FILENO}, {output.get(), STDOUT_FILENO}, {-1, STDERR_FILENO}}});
  } catch (const std::system_error&) {  // a peer that is not installed
    return;
  }
  input = FileDescriptor();
  output = FileDescriptor();  // so that the end of the peer is the end of its answers
  const auto greeting = read_answer();
  found_ = greeting && greeting->value("found", false);
  if (greeting) isa_ = {greeting->value("isa", isa_.name), greeting->value("level", isa_.level)};
  if (found_)
    stop();
  else
    end();
}

// The signal is handled by whichever thread of the peer runs next; until then the others, which
// spin between two calls, take a processor from the turn that follows.
void PeerProcess::stop() {
  process_->signal(SIGSTOP);
  siginfo_t info;
  while (waitid(P_PID, static_cast<id_t>(process_->pid()), &info, WSTOPPED | WEXITED | WNOWAIT) !=
             0 &&
         errno == EINTR) {
  }
}

void PeerProcess::end() {
  found_ = false;
  process_.reset();
}

std::optional<nlohmann::json> PeerProcess::ask(const nlohmann::json& request) {
  if (!process_) return std::nullopt;
  process_->signal(SIGCONT);
  const std::string line = request.dump() + "\n";
  const bool sent = write(in_.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
  auto answer = sent ? read_answer() : std::nullopt;
  if (answer)
    stop();
  else
    end();
  return answer;
}

std::optional<nlohmann::json> PeerProcess::read_answer() {
  while (read_.find('\n') == std::string::npos) {
    pollfd waits{out_.get(), POLLIN, 0};
    char part[4096];
    if (poll(&waits, 1, kPatienceMs) <= 0) return std::nullopt;
    const ssize_t got = read(out_.get(), part, sizeof part);
    if (got <= 0) return std::nullopt;
    read_.append(part, static_cast<size_t>(got));
  }
  const size_t end = read_.find('\n');
  auto answer = nlohmann::json::parse(read_.substr(0, end), nullptr, false);
  read_.erase(0, end + 1);
  if (answer.is_discarded()) return std::nullopt;
  return answer;
}

}  // namespace plugrad::bench
