// What the communication thread does when ranks are late, lost, or differ: see communicator.h.
#include <algorithm>
#include <chrono>
#include <thread>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "distributed/communicator.h"

namespace plugrad::distributed {
namespace {

constexpr std::uint64_t kAnswerNs = kSecondNs;    // for an answer of a rank that is late
constexpr std::uint64_t kNewsNs = kSecondNs / 2;  // for the news of a failure to reach all ranks
constexpr std::uint64_t kWatchNs = kSecondNs / 10;
constexpr const char* kRestart = "start the program again from its last checkpoint";

std::string call_text(const Pending& p) {
  return fmt::format("{}, call {} of {}", to_text(describe(p.call, p.self)), p.number,
                     ranks_text(p.call.group));
}

// The reason why a call failed, after the call itself. The reason may name the same call.
std::string text_for(const std::string& call, std::string reason) {
  const std::string named = call + ": ";
  if (const std::size_t at = reason.find(named); at != reason.npos) reason.erase(at, named.size());
  return named + reason;
}

}  // namespace

std::vector<std::uint32_t> Communicator::unfinished_ranks(const Pending& p) const {
  if (p.movement) return p.movement->unfinished_peers();
  std::vector<std::uint32_t> out;
  for (std::size_t member = 0; member < p.call.group.size(); ++member)
    if (member != p.self && !p.arrived[member]) out.push_back(p.call.group[member]);
  return out;
}

std::vector<std::uint32_t> Communicator::ended_ranks(
    const std::vector<std::uint32_t>& ranks) const {
  std::vector<std::uint32_t> out;
  for (std::uint32_t other : ranks)
    if (other != rank() && liveness(place_, peers_[other].place) == Liveness::HasEnded)
      out.push_back(other);
  return out;
}

// A caller does this for the communication thread, which is inside MPI for good.
void Communicator::fail_stuck(Pending& p) {
  if (p.is_done || p.failure) return;
  std::vector<std::uint32_t> ended;
  for (int tries = 0; tries < 20 && (ended = ended_ranks(p.call.group)).empty(); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it is about to end
  const std::string reason =
      !ended.empty()  ? fmt::format("{} ended unexpectedly; {}", ranks_text(ended), kRestart)
      : has_aborted() ? fmt::format("the MPI library gave up, and said why on stderr; {}", kRestart)
                      : fmt::format("a call of the MPI library does not return; {}", kRestart);
  p.failure = Failure{ErrorKind::Device, call_text(p) + ": " + reason};
  if (broken_) return;
  broken_ = p.failure;
  broken_ns_ = monotonic_ns();
}

// A process that has ended does not arrive any more: its rank is not waited for.
void Communicator::watch_processes() {
  const std::uint64_t now = monotonic_ns();
  if (now < watched_ns_ + kWatchNs) return;
  watched_ns_ = now;
  for (const Shared& call : calls_) {
    const std::vector<std::uint32_t> ended = ended_ranks(call->call.group);
    if (ended.empty()) continue;
    for (std::uint32_t other : ended) peers_[other].is_silent = true;

    begin_to_break({ErrorKind::Device, fmt::format("{}: {} ended unexpectedly; {}",
                                                   call_text(*call), ranks_text(ended), kRestart)});
    return;
  }
}

// While data moves, all members are asked: the one that is lost holds up the others.
void Communicator::ask(const Pending& p) {
  for (std::uint32_t other : p.call.group)
    if (other != rank()) control_.tell(other, {.type = ControlType::Ping});
}

void Communicator::check_deadlines() {
  if (!calls_.empty()) watch_processes();
  if (state_ == State::Breaking) return;
  const std::uint64_t now = monotonic_ns();
  for (const Shared& call : calls_) {
    Pending& p = *call;
    const bool is_late = now > p.moved_ns + p.limit_ns;
    if (is_late && p.asked_ns == 0) {
      p.asked_ns = now;
      ask(p);
    }
    const std::vector<std::uint32_t> missing = unfinished_ranks(p);
    const auto answered = [&](std::uint32_t other) { return peers_[other].heard_ns >= p.asked_ns; };
    const bool has_left =
        !p.movement && std::ranges::any_of(missing, [&](auto r) { return peers_[r].has_left; });
    const bool is_known =
        is_late && (now > p.asked_ns + kAnswerNs || std::ranges::all_of(p.call.group, [&](auto r) {
                      return r == rank() || answered(r);
                    }));
    if (has_left || is_known) return fail_late(p);
  }
}

void Communicator::fail_late(const Pending& p) {
  std::vector<std::uint32_t> silent, left, waiting = unfinished_ranks(p);
  std::string last_error;  // of a rank that has left
  for (std::uint32_t other : p.movement ? p.call.group : waiting) {
    if (other == rank()) continue;
    Peer& peer = peers_[other];
    if (peer.has_left && !p.movement) {
      left.push_back(other);
      if (last_error.empty() && !peer.last_error.empty())
        last_error = fmt::format("the last error of rank {} was: {}", other, peer.last_error);
    } else if (p.asked_ns != 0 && peer.heard_ns < p.asked_ns) {
      silent.push_back(other);
      peer.is_silent = true;
    }
  }
  // A rank that stops while it writes to another's memory may also keep that one from answering.
  const auto lives = [&](std::uint32_t other) {
    const Liveness found = liveness(place_, peers_[other].place);
    return found == Liveness::Runs || found == Liveness::Unknown;
  };
  if (!std::ranges::all_of(silent, lives)) std::erase_if(silent, lives);
  const bool are_stopped = std::ranges::all_of(silent, [&](std::uint32_t other) {
    return liveness(place_, peers_[other].place) == Liveness::IsStopped;
  });
  std::string text = call_text(p) + ": ";
  const double seconds = static_cast<double>(p.limit_ns) / 1e9;
  if (!left.empty()) {
    text += fmt::format("{} ended the program without it; {}", ranks_text(left),
                        last_error.empty() ? "all ranks must start the same calls" : last_error);
  } else if (!silent.empty()) {
    text += fmt::format("{} {} within {} s and {} not answer{}; {}", ranks_text(silent),
                        p.movement ? "sent no data" : "did not arrive", seconds,
                        silent.size() == 1 ? "does" : "do",
                        are_stopped ? ": stopped" : ": lost, or stopped", kRestart);
  } else {
    text += fmt::format("{} {} within {} s", ranks_text(waiting),
                        p.movement ? "moved no data" : "did not arrive", seconds);
    for (std::uint32_t other : waiting)
      text += fmt::format("; rank {} has started last: {}", other, peers_[other].position);
    text +=
        "; start the same calls in all ranks, or set PLUGRAD_COLLECTIVE_SECONDS higher if "
        "that rank computes for longer";
  }

  const bool is_misuse = !left.empty() && last_error.empty();
  begin_to_break({is_misuse ? ErrorKind::User : ErrorKind::Device, std::move(text)});
}

// False if it has already begun.
bool Communicator::begin_to_break(Failure why) {
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::Breaking) return false;
    state_ = State::Breaking;
    if (!broken_) broken_ = std::move(why);
  }
  breaking_ns_ = monotonic_ns();
  Control news{.type = ControlType::Broken, .text = broken_->text, .kind = broken_->kind};
  for (std::uint32_t other = 0; other < peers_.size(); ++other)
    if (peers_[other].is_silent) news.silent.push_back(other);
  try {
    for (std::uint32_t other = 0; other < peers_.size(); ++other)
      if (other != rank() && !peers_[other].is_silent) control_.tell(other, news);
  } catch (const Error& e) {  // ranks that do not hear of it wait for their deadlines
    log_line(LogLevel::Debug, e.what());
  }
  return true;
}

// Callers learn of the failure when all ranks know of it: the first to end may end all others.
void Communicator::continue_to_break() {
  bool all_know = control_.is_flushed();
  for (std::uint32_t other = 0; other < peers_.size(); ++other)
    all_know &= other == rank() || peers_[other].has_broken || peers_[other].is_silent;
  if (all_know || monotonic_ns() > breaking_ns_ + kNewsNs) publish_failure();
}

void Communicator::publish_failure() {
  try {
    for (const Shared& call : calls_)
      if (call->movement) call->movement->abandon(transport_);
    control_.close();
  } catch (const Error& e) {  // the failure that is published says more
    log_line(LogLevel::Debug, e.what());
  }
  bool is_reported = false;
  {
    std::lock_guard lock(mutex_);
    calls_.insert(calls_.end(), started_.begin(), started_.end());
    started_.clear();
    for (const Shared& call : calls_)
      call->failure = Failure{broken_->kind, text_for(call_text(*call), broken_->text)};
    is_reported = !calls_.empty() || !has_begun_;
    calls_.clear();
    state_ = State::Broken;
    broken_ns_ = monotonic_ns();
  }
  to_callers_.notify_all();
  if (!is_reported) log_line(LogLevel::Error, fmt::format("[distributed] {}", broken_->text));
}

}  // namespace plugrad::distributed
