// The side of the callers: hands calls to the communication thread and waits for it.
#include "distributed/communicator.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>

#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/settings.h"
#include "distributed/check_call.h"

namespace plugrad::distributed {
namespace {

using std::chrono::nanoseconds;
constexpr std::uint64_t kTurnNs = kSecondNs / 10;  // of waiting for the communication thread
// A call that was abandoned writes no memory of the caller, but others may still print their error.
constexpr std::uint64_t kGraceNs = kSecondNs;
constexpr std::int32_t kFirstTag = 2, kCallsInTransit = 8000;  // MPI has 32,767 tags or more

Hash128 channel_of(const Call& call) {
  ByteWriter bytes;
  const bool is_pair = call.kind == Kind::Send || call.kind == Kind::Receive;
  bytes.put(is_pair).put(is_pair && (call.kind == Kind::Send) == (call.group[0] == call.peer));
  for (std::uint32_t rank : call.group) bytes.put(rank);
  return hash128(bytes.bytes());
}

}  // namespace

Communicator::Communicator(Transport transport, Beginning beginning)
    : transport_(std::move(transport)),
      control_(transport_),
      beginning_(std::move(beginning)),
      process_(::getpid()) {}

bool Communicator::is_stuck(Stall& stall, std::uint64_t limit_ns) const {
  const std::uint64_t beat = beat_ns_.load(std::memory_order_relaxed);
  stall.turns = beat == stall.beat_ns ? stall.turns + 1 : 0;
  stall.beat_ns = beat;
  return has_aborted() || stall.turns * kTurnNs > limit_ns;
}

void Communicator::begin() {
  beat_ns_ = monotonic_ns();
  thread_ = std::thread([this] { run_thread(); });
  {
    std::unique_lock lock(mutex_);
    Stall stall;
    while (state_ == State::Opening) {
      to_callers_.wait_for(lock, nanoseconds(kTurnNs));
      if (state_ == State::Opening && is_stuck(stall, beginning_.limit_ns)) {
        broken_ =
            Failure{ErrorKind::Device,
                    fmt::format("MPI was not initialised within {} s: a rank has not started, "
                                "or does not reach plugrad::distributed::init()",
                                beginning_.limit_ns / kSecondNs)};
        break;
      }
    }
    if (broken_) fail(broken_->kind, "[distributed::init] {}", broken_->text);
  }
  // Its arrivals come after each rank's Hello, so that all programs are compared when it is done.
  std::vector<std::uint32_t> all(size());
  for (std::uint32_t rank = 0; rank < size(); ++rank) all[rank] = rank;
  try {
    run_first(*this, std::move(all));
  } catch (const Error& e) {
    fail(e.kind(), "[distributed::init] {}", broken_->text);
  }
  has_begun_ = true;
}

void Communicator::require_usable(const Call& call) {
  require(::getpid() == process_,
          "[{}] {}: this process was forked from one that had called "
          "plugrad::distributed::init(), and has no connection to the other ranks; fork first, or "
          "start the programs of all ranks by the launcher",
          name_of(call.kind), quoted_name(call.tensor));
}

void Communicator::number_call(Pending& p) {
  p.channel = channel_of(p.call);
  Channel& channel = channels_[{p.channel.high, p.channel.low}];
  channel.history = extend_history(channel.history, describe(p.call, p.self));
  p.number = ++channel.count;
  p.history = channel.history;
  p.tag = kFirstTag + kTagsOfCall * (next_tag_++ % kCallsInTransit);
}

Request Communicator::start(Call call) {
  require_usable(call);
  check_call(call, rank(), size());
  auto p = std::make_shared<Pending>();
  p->call = std::move(call);
  const auto& group = p->call.group;
  p->self = static_cast<std::uint32_t>(std::ranges::find(group, rank()) - group.begin());
  p->limit_ns = static_cast<std::uint64_t>(settings().collective_seconds * 1e9);
  p->moved_ns = monotonic_ns();
  p->arrived.resize(group.size());
  {
    std::lock_guard lock(mutex_);
    if (has_aborted()) fail_stuck(*p);
    if (broken_)
      fail(broken_->kind, "[{}] {} was not started, because an earlier collective failed: {}",
           name_of(p->call.kind), quoted_name(p->call.tensor), broken_->text);
    require(!shall_leave_ && state_ != State::Ended,
            "[{}] {} was started after the end of the program", name_of(p->call.kind),
            quoted_name(p->call.tensor));
    number_call(*p);
    started_.push_back(p);
  }
  to_thread_.notify_one();
  return Request(p);
}

std::uint64_t Communicator::wait(const Request& request) {
  const Shared& p = request.call();
  require(p != nullptr, "[distributed] an empty request cannot be waited for");
  require_usable(p->call);
  std::unique_lock lock(mutex_);
  Stall stall;
  while (!p->is_done && !p->failure) {
    to_callers_.wait_for(lock, nanoseconds(kTurnNs));
    if (!p->is_done && !p->failure && is_stuck(stall, p->limit_ns + 2 * kSecondNs)) fail_stuck(*p);
  }
  if (p->failure) fail(p->failure->kind, "[distributed] {}", p->failure->text);
  return p->done_ns;
}

bool Communicator::is_done(const Request& request) {
  std::lock_guard lock(mutex_);
  if (request && has_aborted()) fail_stuck(*request.call());
  return !request || request.call()->is_done || request.call()->failure;
}

void Communicator::end() {
  if (::getpid() != process_ || !thread_.joinable()) return;
  std::unique_lock lock(mutex_);
  shall_leave_ = true;
  to_thread_.notify_one();
  Stall stall;
  const bool never_began = state_ == State::Opening && broken_;  // begin() has waited for it
  while (!never_began && state_ != State::Ended && state_ != State::Broken) {
    to_callers_.wait_for(lock, nanoseconds(kTurnNs));
    if (is_stuck(stall, beginning_.limit_ns)) break;
  }
  if (state_ == State::Ended) {
    lock.unlock();
    thread_.join();
    return;
  }
  const bool can_abort = state_ == State::Broken;
  const std::uint64_t end_ns = broken_ns_ + kGraceNs, now = monotonic_ns();
  lock.unlock();
  if (can_abort && end_ns > now) std::this_thread::sleep_for(nanoseconds(end_ns - now));
  end_processes();
}

// MPI_Abort also ends ranks that are stopped. MPI_Finalize would wait for them.
void Communicator::end_processes() {
  std::cout.flush();
  std::fflush(nullptr);
  {
    std::lock_guard lock(mutex_);
    shall_abort_ = true;
  }
  to_thread_.notify_one();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  ::_exit(1);
}

}  // namespace plugrad::distributed
