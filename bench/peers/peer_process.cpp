#include "bench/peers/peer_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace plugrad::bench {
namespace {

constexpr int kPatienceMs = 120'000;

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

// What is set here goes before what the environment had of the same name.
std::vector<std::string> joined(const std::vector<std::string>& added) {
  std::vector<std::string> all = added;
  for (char** text = environ; *text; ++text) {
    const std::string old = *text, name = old.substr(0, old.find('=') + 1);
    bool replaced = false;
    for (const std::string& one : added) replaced |= one.starts_with(name);
    if (!replaced) all.push_back(old);
  }
  return all;
}

}  // namespace

PeerProcess::PeerProcess(std::vector<std::string> words,
                         const std::vector<std::string>& environment) {
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe");
  const std::vector<std::string> variables = joined(environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const int error = posix_spawnp(&process_, words[0].c_str(), &actions, nullptr,
                                 pointers(words).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(to[0]), close(from[1]);
  in_ = to[1], out_ = from[0];
  if (error != 0) {
    process_ = -1;
    return;
  }
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
  kill(process_, SIGSTOP);
  siginfo_t info;
  while (waitid(P_PID, static_cast<id_t>(process_), &info, WSTOPPED | WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
}

PeerProcess::~PeerProcess() {
  end();
  if (in_ >= 0) close(in_);
  if (out_ >= 0) close(out_);
}

void PeerProcess::end() {
  found_ = false;
  if (process_ < 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = -1;
}

std::optional<nlohmann::json> PeerProcess::ask(const nlohmann::json& request) {
  if (process_ < 0) return std::nullopt;
  kill(process_, SIGCONT);
  const std::string line = request.dump() + "\n";
  const bool sent = write(in_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  auto answer = sent ? read_answer() : std::nullopt;
  if (answer)
    stop();
  else
    end();
  return answer;
}

std::optional<nlohmann::json> PeerProcess::read_answer() {
  while (read_.find('\n') == std::string::npos) {
    pollfd waits{out_, POLLIN, 0};
    char part[4096];
    if (poll(&waits, 1, kPatienceMs) <= 0) return std::nullopt;
    const ssize_t got = read(out_, part, sizeof part);
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
