// The communication thread: brings arrivals together, moves data, and leaves with all ranks.
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/clock.h"
#include "base/launch/last_error.h"
#include "distributed/communicator.h"

namespace plugrad::distributed {
namespace {

using std::chrono::microseconds;
// Rounds without progress before the thread sleeps, so that it takes no time from kernels.
constexpr unsigned kSpinRounds = 50, kMostSleepUs = 200;
// While no call is in flight, control messages are looked for this often.
constexpr microseconds kIdle{2000};

std::string differs_text(const Control& theirs, const Pending& mine, std::uint32_t source) {
  const std::string& program = theirs.description.program;
  if (!program.empty() && !mine.call.program.empty() && program != mine.call.program)
    return fmt::format(
        "{}, call {} of {}: rank {} has recorded other functions before it ({}) than this rank "
        "({}); all ranks must record the same functions, of the same shapes, dtypes and numbers, "
        "in the same order, and read the same values",
        to_text(describe(mine.call, mine.self)), mine.number, ranks_text(mine.call.group), source,
        program, mine.call.program);
  return fmt::format(
      "{}, call {} of {}: rank {} has started {} there instead; all ranks must start the calls of "
      "a group in the same order, with the same shapes and dtypes",
      to_text(describe(mine.call, mine.self)), mine.number, ranks_text(mine.call.group), source,
      to_text(theirs.description));
}

bool agrees(const Control& theirs, const Pending& mine, std::uint32_t member) {
  if (theirs.history != mine.history) return false;
  const Description& d = theirs.description;
  return mine.call.kind != Kind::AllToAll || (d.to_reader == mine.call.receive_counts[member] &&
                                              d.from_reader == mine.call.counts[member]);
}

}  // namespace

void Communicator::run_thread() {
  ::prctl(PR_SET_TIMERSLACK, 1000UL);  // nanoseconds: sleeps of 20 µs are not rounded to 70
  try {
    transport_.open();
    peers_.resize(transport_.size());
    if (beginning_.size != 0 && transport_.size() != beginning_.size)
      fail(ErrorKind::User, "{}",
           fmt::format(fmt::runtime(beginning_.wrong_size), transport_.library(),
                       transport_.size()));
    control_.open();
    place_ = own_place();
    if (size() > 1) survive_aborts_of_this_thread();
    control_.tell_all({.type = ControlType::Hello, .text = beginning_.program, .place = place_});
    {
      std::lock_guard lock(mutex_);
      state_ = State::Open;
    }
    to_callers_.notify_all();
  } catch (const Error& e) {
    begin_to_break({e.kind(), e.what()});
    publish_failure();
  }
  while (state_ != State::Ended && state_ != State::Broken) {
    try {
      serve();
    } catch (const std::exception& e) {
      const auto* error = dynamic_cast<const Error*>(&e);
      if (!begin_to_break({error ? error->kind() : ErrorKind::Internal, e.what()}))
        publish_failure();
    }
  }
  if (state_ == State::Ended) return;
  std::unique_lock lock(mutex_);
  to_thread_.wait(lock, [&] { return shall_abort_; });
  lock.unlock();
  transport_.abort(1);
}

void Communicator::serve() {
  forgive_own_stop();
  progressed_ = false;
  take_started();
  read_control();
  if (state_ == State::Breaking) {
    continue_to_break();
  } else {
    advance_calls();
    check_deadlines();
    if (calls_.empty()) leave();
  }
  pause();
}

// A time in which this process was stopped does not count for the deadlines of its calls.
void Communicator::forgive_own_stop() {
  constexpr std::uint64_t kLongestRoundNs = 1'000'000'000;
  const std::uint64_t now = monotonic_ns(), before = beat_ns_.exchange(now);
  if (now < before + kLongestRoundNs) return;
  for (const Shared& call : calls_) call->moved_ns += now - before;
  if (bye_ns_ != 0) bye_ns_ += now - before;
}

void Communicator::take_started() {
  std::deque<Shared> taken;
  {
    std::lock_guard lock(mutex_);
    taken.swap(started_);
  }
  for (const Shared& call : taken) add(call);
  progressed_ |= !taken.empty();
}

void Communicator::add(const Shared& call) {
  calls_.push_back(call);
  Pending& p = *call;
  if (state_ == State::Breaking) return;
  last_call_ = fmt::format("{}, call {} of {}", to_text(describe(p.call, p.self)), p.number,
                           ranks_text(p.call.group));
  for (std::uint32_t member = 0; member < p.call.group.size(); ++member)
    if (member != p.self)
      control_.tell(p.call.group[member], {.type = ControlType::Arrive,
                                           .channel = p.channel,
                                           .number = p.number,
                                           .history = p.history,
                                           .tag = p.tag,
                                           .description = describe(p.call, member)});
  const auto [first, last] = early_.equal_range({p.channel.high, p.channel.low, p.number});
  const std::vector<std::pair<ArrivalKey, std::pair<std::uint32_t, Control>>> early(first, last);
  early_.erase(first, last);
  for (const auto& [key, arrival] : early) note_arrival(p, arrival.second, arrival.first);
}

void Communicator::read_control() {
  while (auto message = control_.next()) {
    peers_[message->second].heard_ns = monotonic_ns();
    handle(message->first, message->second);
    progressed_ = true;
  }
  control_.is_flushed();
}

void Communicator::handle(const Control& control, std::uint32_t source) {
  switch (control.type) {
    case ControlType::Hello:
      require(control.text == beginning_.program,
              "rank {} runs {}, but this rank {} runs {}; start one program, of "
              "one version, in all ranks",
              source, control.text, rank(), beginning_.program);
      peers_[source].place = control.place;
      return;
    case ControlType::Arrive:
      return handle_arrival(control, source);
    case ControlType::Ping:
      return control_.tell(source, {.type = ControlType::Pong, .text = last_call_});
    case ControlType::Pong:
      peers_[source].position = control.text;
      return;
    case ControlType::Broken:
      peers_[source].has_broken = true;
      for (std::uint32_t other : control.silent) peers_[other].is_silent = true;
      begin_to_break({control.kind, fmt::format("rank {} reports: {}", source, control.text)});
      return;
    case ControlType::Bye:
      peers_[source].has_left = true;
      peers_[source].last_error = control.text;
      return;
  }
}

void Communicator::handle_arrival(const Control& control, std::uint32_t source) {
  for (const Shared& call : calls_)
    if (call->channel == control.channel && call->number == control.number)
      return note_arrival(*call, control, source);
  early_.emplace(ArrivalKey{control.channel.high, control.channel.low, control.number},
                 std::pair{source, control});
}

void Communicator::note_arrival(Pending& p, const Control& control, std::uint32_t source) {
  const auto member =
      static_cast<std::uint32_t>(std::ranges::find(p.call.group, source) - p.call.group.begin());
  ensure(member < p.call.group.size());
  p.arrived[member] = control;
  if (agrees(control, p, member)) return;

  begin_to_break({ErrorKind::User, differs_text(control, p, source)});
}

void Communicator::advance_calls() {
  std::vector<Shared> done;
  for (const Shared& call : calls_)
    if (advance(*call)) done.push_back(call);
  for (const Shared& call : done) finish(call);
}

// Whether the call is done.
bool Communicator::advance(Pending& p) {
  if (!p.movement) {
    std::vector<int> tags(p.call.group.size());
    for (std::size_t member = 0; member < tags.size(); ++member) {
      if (member == p.self) continue;
      if (!p.arrived[member]) return false;
      tags[member] = p.arrived[member]->tag;
    }
    p.movement.emplace(Meeting{
        .call = p.call, .self = p.self, .own_tag = p.tag, .tag_of_member = std::move(tags)});
    p.moved_ns = monotonic_ns();
    p.asked_ns = 0;
    progressed_ = true;
  }
  if (p.movement->advance(transport_)) {
    p.moved_ns = monotonic_ns();
    p.asked_ns = 0;
    progressed_ = true;
  }
  return p.movement->is_done();
}

void Communicator::finish(const Shared& call) {
  std::erase(calls_, call);
  {
    std::lock_guard lock(mutex_);
    call->is_done = true;
    call->done_ns = monotonic_ns();
  }
  to_callers_.notify_all();
}

void Communicator::leave() {
  {
    std::lock_guard lock(mutex_);
    if (!shall_leave_ || !started_.empty()) return;
  }
  const std::uint64_t now = monotonic_ns();
  if (bye_ns_ == 0) {
    control_.tell_all({.type = ControlType::Bye, .text = last_device_error()});
    bye_ns_ = asked_ns_ = now;
  }
  bool all_left = true;
  std::vector<std::uint32_t> silent;
  for (std::uint32_t other = 0; other < size(); ++other) {
    if (other == rank() || peers_[other].has_left) continue;
    all_left = false;
    if (now > std::max(bye_ns_, peers_[other].heard_ns) + beginning_.limit_ns)
      silent.push_back(other);
    else if (now > asked_ns_ + beginning_.limit_ns / 4)
      control_.tell(other, {.type = ControlType::Ping});
  }
  if (now > asked_ns_ + beginning_.limit_ns / 4) asked_ns_ = now;
  if (!silent.empty()) {
    for (std::uint32_t other : silent) peers_[other].is_silent = true;
    begin_to_break({ErrorKind::Device,
                    fmt::format("{} did not answer at the end of the program: it was lost or is "
                                "stopped",
                                ranks_text(silent))});
    return;
  }
  if (!all_left || !control_.is_flushed()) return;
  control_.close();
  transport_.close();
  std::lock_guard lock(mutex_);
  state_ = State::Ended;
  to_callers_.notify_all();
}

void Communicator::pause() {
  if (progressed_) {
    idle_rounds_ = 0;
    return;
  }
  if (calls_.empty() && state_ != State::Breaking) {
    std::unique_lock lock(mutex_);
    if (state_ == State::Open && started_.empty()) to_thread_.wait_for(lock, kIdle);
    return;
  }
  if (++idle_rounds_ < kSpinRounds)
    ::sched_yield();
  else
    std::this_thread::sleep_for(
        microseconds(std::min(kMostSleepUs, 20 + (idle_rounds_ - kSpinRounds) / 8)));
}

}  // namespace plugrad::distributed
