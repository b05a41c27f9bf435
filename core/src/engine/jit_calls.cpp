#include "engine/jit_calls.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "engine/parts.h"

namespace plugrad::engine {
namespace {

// Of two calls that run their functions at once, one could realise what the other assigned.
std::mutex one_recording;

// Which axes are counted, and which of them alike or by another argument.
void add_counts(std::vector<uint64_t>& words, Session& session,
                std::span<const StatePtr> arguments) {
  if (!session.has_bounds()) return;
  std::vector<Id> counts;
  for (const StatePtr& argument : arguments) {
    if (!argument || !session.is_counted(argument->node)) continue;
    const std::vector<Extent>& extents = session.extents_of(argument->node);
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      if (!extents[axis].is_counted()) continue;
      const auto first = std::ranges::find(counts, extents[axis].count) - counts.begin();
      words.push_back(static_cast<uint64_t>(&argument - arguments.data()));
      words.push_back(axis << 32 | static_cast<uint64_t>(first));
      words.push_back(static_cast<uint64_t>(extents[axis].least));
      if (static_cast<size_t>(first) == counts.size()) counts.push_back(extents[axis].count);
    }
  }
  for (const StatePtr& argument : arguments)
    if (argument && !counts.empty())
      words.push_back(
          static_cast<uint64_t>(std::ranges::find(counts, argument->node) - counts.begin()));
}

std::vector<uint64_t> full_key(Session& session, std::span<const StatePtr> arguments,
                               std::span<const uint64_t> key) {
  std::vector<uint64_t> words(key.begin(), key.end());
  words.push_back(session.default_device());
  words.push_back(KernelOptions::from_settings().bits());
  const Session::Lock lock(session);
  for (const StatePtr& argument : arguments) {
    const auto first = std::ranges::find(arguments, argument) - arguments.begin();
    words.push_back(static_cast<uint64_t>(first));
    if (!argument) continue;
    const Node& node = session.graph()[argument->node];
    const uint32_t device = session.devices()[argument->node];
    const auto shape = session.shape(argument->node);
    words.push_back(static_cast<uint64_t>(node.dtype) | uint64_t{argument->requires_grad} << 8 |
                    shape.size() << 16 | uint64_t{device != 0 ? device : argument->device} << 32);
    words.insert(words.end(), shape.begin(), shape.end());
    if (node.op == Op::Const) words.push_back(node.arg);
  }
  add_counts(words, session, arguments);
  return words;
}

// As after a recorded call, so that a program does not change its meaning with JIT=0.
void release_tapes(Session& session, const JitOutput& output) {
  for (const StatePtr& state : output.tensors)
    if (state && !state->requires_grad) {
      session.realize(*state);
      session.release_tape(*state);
    }
}

}  // namespace

size_t JitCalls::recordings() const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::ranges::count(entries_, true, &Entry::is_ready));
}

JitCalls::Entry& JitCalls::entry_of(std::vector<uint64_t> key) {
  auto found = std::ranges::find(entries_, key, &Entry::key);
  if (found == entries_.end()) {
    if (entries_.size() >= kMostEntries)
      entries_.erase(std::ranges::min_element(entries_, {}, &Entry::last_used));
    entries_.push_back({.key = std::move(key)});
    found = std::prev(entries_.end());
  }
  found->last_used = ++uses_;
  return *found;
}

JitOutput JitCalls::call(std::span<const StatePtr> arguments, std::span<const uint64_t> key,
                         const Function& function) {
  if (JitTrace::active()) return function();  // part of the outer function's recording
  Session& session = Session::current();
  if (settings().jit == 0) {
    JitOutput output = function();
    release_tapes(session, output);
    return output;
  }
  const std::lock_guard lock(mutex_);
  Entry& entry = entry_of(full_key(session, arguments, key));
  if (entry.is_ready) {
    JitReplay replay(session, *entry.recording, arguments);
    if (replay.is_valid()) return replay.run();
    entry = {.key = std::move(entry.key), .last_used = entry.last_used};
  }
  return record(entry, arguments, function);
}

JitOutput JitCalls::record(Entry& entry, std::span<const StatePtr> arguments,
                           const Function& function) {
  const std::lock_guard lock(one_recording);
  Session& session = Session::current();
  std::vector<TensorState*> states;
  for (const StatePtr& argument : arguments)
    if (argument) states.push_back(argument.get());
  session.realize_with_pending(states);
  JitTrace trace(session, arguments);
  JitOutput output = function();
  keep(entry, trace.finish(output, entry.recording != nullptr));
  return output;
}

void JitCalls::keep(Entry& entry, JitRecording made) {
  if (made.has_strangers) return;  // another thread was at work; the next call is another try
  ++entry.calls;
  std::string difference;
  if (entry.recording) {
    difference = made.difference_from(*entry.recording);
    entry.is_ready = difference.empty();
  }
  entry.recording = std::make_shared<JitRecording>(std::move(made));
  if (entry.is_ready) {
    for (JitValue& value : entry.recording->values) value.host_owner.reset();
    for (JitRun& run : entry.recording->runs) run.ready->is_recorded = true;
    if (debugging(1))
      debug_write(fmt::format("jit: recorded {} plans on {} values\n", entry.recording->runs.size(),
                              entry.recording->values.size()));
    return;
  }
  if (entry.calls < kMostCalls) return;
  entry = {.key = std::move(entry.key), .last_used = entry.last_used};
  fail(ErrorKind::User,
       "[jit] the function did something else in each of its {} calls with such arguments, so that "
       "there is nothing to replay: {}. Pass what changes as an argument: as a tensor, or as a "
       "number, of which each value is recorded; JIT=0 runs the function as it is",
       kMostCalls, difference);
}

}  // namespace plugrad::engine
