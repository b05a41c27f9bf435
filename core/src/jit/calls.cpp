#include "jit/calls.h"

#include <algorithm>
#include <utility>

#include "base/binding.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/log.h"
#include "engine/session_state.h"
#include "jit/facts.h"

namespace plugrad::jit_detail {
namespace {

// Only one call records at a time: a second one could realise what the first has assigned.
std::mutex one_recording;

// Adds the signature of the counted axes: which ones, which share a count, and which arguments are
// such a count.
void add_counts(std::vector<uint64_t>& words, engine::Session& session,
                std::span<const engine::StatePtr> arguments) {
  if (!session.has_bounds()) return;
  std::vector<Id> counts;
  for (const engine::StatePtr& argument : arguments) {
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
  for (const engine::StatePtr& argument : arguments)
    if (argument && !counts.empty())
      words.push_back(
          static_cast<uint64_t>(std::ranges::find(counts, argument->node) - counts.begin()));
}

// The facts of a call; first come those of which there may be many: the numbers among its arguments,
// i.e. `own` and the constants of weak dtypes, then the sizes of tensors.
struct CallKey {
  std::vector<uint64_t> words;
  size_t numbers, sizes;
};

CallKey key_of_call(engine::Session& session, std::span<const engine::StatePtr> arguments,
                    std::span<const uint64_t> own, std::span<const uint64_t> modes) {
  const engine::Session::Lock lock(session);
  std::vector<uint64_t> words(own.begin(), own.end());
  std::vector<bool> is_constant;
  std::vector<uint64_t> facts, sizes, others;
  for (const engine::StatePtr& argument : arguments) {
    std::optional<uint64_t> number;
    if (argument && is_number(session, *argument)) number = session.constant_value(argument->node);
    if (number) words.push_back(*number);
    is_constant.push_back(number.has_value());
    if (!argument) continue;
    facts.clear();
    add_facts(facts, session, *argument);
    const auto shape = facts.begin() + 1;  // behind the dtype
    const auto end = shape + static_cast<std::ptrdiff_t>(session.shape(argument->node).size());
    sizes.insert(sizes.end(), shape, end);
    others.push_back(facts[0]);
    others.insert(others.end(), end, facts.end());
  }
  const size_t numbers = words.size();
  words.insert(words.end(), sizes.begin(), sizes.end());
  words.insert(words.end(), others.begin(), others.end());
  words.insert(words.end(), modes.begin(), modes.end());
  words.push_back(session.default_device());
  const engine::KernelOptions options = engine::KernelOptions::from_settings();
  words.push_back(options.bits());
  words.push_back(options.lists);
  words.push_back(settings().check_indices);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const engine::StatePtr& argument = arguments[i];
    const auto first = std::ranges::find(arguments, argument) - arguments.begin();
    words.push_back(static_cast<uint64_t>(first));
    if (!argument) continue;
    words.push_back(argument->requires_grad);
    words.push_back(is_constant[i]);
  }
  add_counts(words, session, arguments);
  return {std::move(words), numbers, sizes.size()};
}

// Marks the arguments that were the same tensors in both calls: the recording cannot tell whether
// the function used its argument or captured the same tensor. Returns whether there are any.
bool mark_captured(JitRecording& made, const JitRecording& before) {
  bool any = false;
  for (size_t i = 0; i < made.tensors.size(); ++i) {
    JitTensor& tensor = made.tensors[i];
    tensor.may_be_captured = tensor.argument != JitTensor::kCaptured &&
                             is_same_owner(tensor.state, before.tensors[i].state);
    any |= tensor.may_be_captured;
  }
  return any;
}

// Limits recursion of a jitted function, which would otherwise overflow the stack.
class NestedCall {
 public:
  NestedCall() {
    require(depth_ < kDeepest,
            "[jit] {} calls of jitted functions are inside each other: does one call itself? Its "
            "end must not depend on values of tensors",
            kDeepest);
    ++depth_;
  }
  ~NestedCall() { --depth_; }
  NestedCall(const NestedCall&) = delete;
  NestedCall& operator=(const NestedCall&) = delete;

 private:
  static constexpr int kDeepest = 100;  // each uses 1 KiB of stack beside the function's own
  static thread_local int depth_;
};
thread_local int NestedCall::depth_ = 0;

thread_local int inline_scopes = 0;

/// Runs the function. What it makes and returns are values: a replay returns no views either.
JitOutput output_of(engine::Session& session, const JitCalls::Function& function) {
  const uint64_t last = session.states_made();
  JitOutput output = function();
  for (const engine::StatePtr& state : output.tensors)
    if (state && state->number > last) session.make_value(*state);
  return output;
}

/// Without recording it, with the same meaning.
JitOutput run_plainly(engine::Session& session, const JitCalls::Function& function) {
  JitOutput output = output_of(session, function);
  for (const engine::StatePtr& state : output.tensors)
    if (state && !state->requires_grad) session.cut_tape(*state);
  return output;
}

}  // namespace

InlineScope::InlineScope() {
  ++inline_scopes;
}
InlineScope::~InlineScope() {
  --inline_scopes;
}

bool is_part_of_recording() {
  return JitTrace::active() || inline_scopes > 0;
}

// A call with an argument that the function also captures has a key of its own.
void JitCalls::add_captured(std::vector<uint64_t>& words,
                            std::span<const engine::StatePtr> arguments) const {
  for (const engine::StatePtr& argument : arguments) {
    const auto known = captured_.find(argument.get());
    const bool is_captured = known != captured_.end() && known->second.state.lock() == argument;
    words.push_back(is_captured ? known->second.number : 0);
  }
}

void JitCalls::note_captured(const JitRecording& recording) {
  std::erase_if(captured_, [](const auto& entry) { return entry.second.state.expired(); });
  for (const JitTensor& tensor : recording.tensors)
    if (const engine::StatePtr state = tensor.state.lock();
        state && tensor.argument == JitTensor::kCaptured)
      if (captured_.try_emplace(state.get(), state, captures_ + 1).second) ++captures_;
}

size_t JitCalls::recordings() const {
  if (cuts_) return cuts_->recordings(engine::Session::current());
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::ranges::count(entries_, true, &Entry::is_ready));
}

JitCalls::Entry* JitCalls::find_entry(const std::vector<uint64_t>& key,
                                      std::span<const engine::StatePtr> arguments,
                                      std::optional<JitReplay>& replay) {
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) {
    replay.reset();
    if (entry.key != key) return false;
    if (!entry.recording) return true;
    return replay.emplace(engine::Session::current(), *entry.recording, arguments)
        .has_the_gradients();
  });
  return found == entries_.end() ? nullptr : &*found;
}

JitCalls::Entry& JitCalls::add_entry(std::vector<uint64_t> key) {
  if (entries_.size() >= kMostEntries)
    entries_.erase(std::ranges::min_element(entries_, {}, &Entry::last_used));
  return entries_.emplace_back(Entry{.key = std::move(key)});
}

// Recording each of many values or lengths would compile each; kernels of the plain function serve many.
// One that comes back while recordings of all fit is recorded.
bool JitCalls::is_one_of_many(std::span<const uint64_t> key, size_t numbers, size_t sizes) {
  if (is_pure_ || numbers + sizes == 0) return false;
  constexpr size_t kMostKinds = 256, kFirstNumbers = 8, kFirstShapes = 4;
  constexpr size_t kMostPlain = kMostEntries - kFirstNumbers;
  if (values_.size() >= kMostKinds) values_.clear();
  Values& values = values_[hash64(std::as_bytes(key.subspan(numbers + sizes)), numbers + sizes)];
  const Varying now{hash64(std::as_bytes(key.first(numbers))),
                    hash64(std::as_bytes(key.subspan(numbers, sizes)))};
  if (std::ranges::count(values.recorded, now) > 0) return false;
  const auto of_shapes = std::ranges::count(values.recorded, now.sizes, &Varying::sizes);
  if (of_shapes == 0 ? values.shapes < kFirstShapes : of_shapes < ptrdiff_t{kFirstNumbers}) {
    values.shapes += of_shapes == 0;
    return values.recorded.push_back(now), false;
  }
  if (std::erase(values.plain, now) > 0) return false;
  if (values.plain.size() == kMostPlain) values.plain.erase(values.plain.begin());
  values.plain.push_back(now);
  return true;
}

// Says once why the last calls were no replays.
void JitCalls::warn_of_misses() {
  constexpr uint64_t kMany = 4;
  if (misses_in_a_row_ < kMany || is_pure_ || misses_.empty()) return;
  if (std::exchange(has_warned_, true)) return;
  const std::string place = describe_place(current_place());
  log_warning(
      "[jit] {}{} calls in a row ran the function instead of replaying it. In the last one {}. "
      "explain() of the jitted function lists all",
      place.empty() ? "" : place + ": ", misses_in_a_row_, misses_.last_text());
}

std::string JitCalls::name_of_varying() const {
  for (const engine::Cause cause : {engine::Cause::Number, engine::Cause::Shape})
    if (std::string name = misses_.last_name(cause); !name.empty()) return name;
  return "an argument";
}

void JitCalls::note_miss(std::vector<engine::Difference> differences) {
  misses_.add({.number = calls_, .differences = std::move(differences)});
  ++misses_in_a_row_;
}

void JitCalls::note_new(std::vector<engine::Fact> facts, bool has_equal_key) {
  using engine::Cause;
  if (auto differences = kinds_.add(std::move(facts)))
    note_miss(*std::move(differences));
  else if (has_equal_key)
    note_miss({{Cause::Gradient, "which tensors have gradients differs", "", ""}});
  else
    note_miss({{Cause::Dropped, "no recording of such a call is kept", "", ""}});
}

std::string JitCalls::explain() const {
  if (cuts_) return cuts_->explain(engine::Session::current());
  const std::lock_guard lock(mutex_);
  const auto ready = std::ranges::count(entries_, true, &Entry::is_ready);
  std::string text =
      fmt::format("{} calls: {} replayed one of {} recordings, {} ran to be recorded", calls_,
                  calls_ - recorded_calls_ - plain_calls_, ready, recorded_calls_);
  if (plain_calls_ > 0)
    text += fmt::format(", {} ran without being recorded because {} differed in each", plain_calls_,
                        name_of_varying());
  return text + "\n" + misses_.text();
}

JitOutput JitCalls::call(std::span<const engine::StatePtr> arguments, std::span<const uint64_t> own,
                         std::span<const uint64_t> modes, const Function& function,
                         const DescribeArguments& describe) {
  const NestedCall nested;
  engine::Session& session = engine::Session::current();
  // A part of what is recorded.
  if (is_part_of_recording()) return output_of(session, function);
  if (cuts_ && settings().jit != 0)
    return cuts_->call(session, arguments, [&] { return output_of(session, function); });
  // Two threads could deadlock on the session and these locks. A caller that holds the session's
  // lock, e.g. in a backward function, therefore does not wait.
  std::unique_lock lock(mutex_, std::defer_lock);
  std::unique_lock recording(one_recording, std::defer_lock);
  const bool must_not_wait = engine::holds_session_lock();
  const bool is_free =
      settings().jit != 0 && (!must_not_wait || std::try_lock(lock, recording) == -1);
  if (!is_free) return run_plainly(session, function);
  if (!lock) lock.lock();
  auto [words, numbers, sizes] = key_of_call(session, arguments, own, modes);
  add_captured(words, arguments);
  ++calls_;
  std::optional<JitReplay> replay;
  Entry* const found = find_entry(words, arguments, replay);
  const bool is_plain = !found && is_one_of_many(words, numbers, sizes);
  if (!found && describe && !(is_plain && has_warned_))
    note_new(facts_of_call(session, arguments, own, modes, describe()),
             std::ranges::count(entries_, words, &Entry::key) > 0);
  if (is_plain) {
    if (recording) recording.unlock();
    ++plain_calls_;
    const InlineScope inlined;  // functions inside it do not wait for other functions' locks
    JitOutput output = run_plainly(session, function);
    warn_of_misses();
    return output;
  }
  Entry& entry = found ? *found : add_entry(std::move(words));
  entry.last_used = calls_;
  if (entry.is_ready) {
    auto invalid = replay->invalid_because();
    const bool is_valid = !invalid, is_as_captured = replay->has_captured_arguments();
    if (is_valid && is_as_captured) misses_in_a_row_ = 0;
    if (is_valid && is_as_captured && settings().jit == 1) return replay->run(write_view_);
    if (!recording) recording.lock();
    if (is_valid && is_as_captured && entry.is_comparable)
      return compared(entry, arguments, function);
    if (invalid) note_miss({*std::move(invalid)});
    if (is_valid && !is_as_captured) {  // this call decides whether the tensor's identity matters
      note_miss({{engine::Cause::Captured,
                  "an argument that the function may also capture is another tensor", "", ""}});
      entry.is_ready = false;
      entry.calls = 1;
    } else {
      entry = {.key = std::move(entry.key), .last_used = entry.last_used};
    }
  }
  replay.reset();
  if (!recording) recording.lock();
  return record(entry, arguments, function);
}

JitRecording JitCalls::trace(JitOutput& output, std::span<const engine::StatePtr> arguments,
                             bool keeps, const Function& function) {
  engine::Session& session = engine::Session::current();
  std::vector<engine::TensorState*> states;
  for (const engine::StatePtr& argument : arguments)
    if (argument) states.push_back(argument.get());
  session.realize_with_pending(states);
  JitRecording made;
  std::vector<AssignedView> assigned;
  {
    JitTrace trace(session, arguments);
    output = output_of(session, function);
    made = trace.finish(output, keeps);
    assigned = trace.assigned_views();
  }
  const engine::Session::StepScope all_or_none;
  for (const auto& [view, value] : assigned) write_view_(*view, *value);
  all_or_none.done();
  return made;
}

JitOutput JitCalls::record(Entry& entry, std::span<const engine::StatePtr> arguments,
                           const Function& function) {
  ++recorded_calls_;
  JitOutput output;
  keep(entry, trace(output, arguments, entry.recording != nullptr, function));
  warn_of_misses();
  most_results_ = std::max(most_results_.load(), output.tensors.size());
  return output;
}

// Calls the function in place of a replay and compares it with the recording.
JitOutput JitCalls::compared(const Entry& entry, std::span<const engine::StatePtr> arguments,
                             const Function& function) {
  ++recorded_calls_;
  JitOutput output;
  const JitRecording made = trace(output, arguments, true, function);
  const std::string difference = made.has_strangers ? "" : made.difference_from(*entry.recording);
  require(difference.empty(),
          "[jit] a replay would not do what the function does now: {}. Pass what changes as an "
          "argument; assign() to a tensor that is captured instead of making its handle denote "
          "another (found because of JIT=2)",
          difference);
  return output;
}

void JitCalls::keep(Entry& entry, JitRecording made) {
  if (made.has_strangers) return;  // another thread interfered; retry at the next call
  ++entry.calls;
  note_captured(made);
  std::string difference;
  bool is_ready = is_pure_, may_capture = false;
  if (!is_pure_ && entry.recording) {
    difference = made.difference_from(*entry.recording);
    is_ready = difference.empty();
    if (is_ready) may_capture = mark_captured(made, *entry.recording);
    if (!is_ready)
      note_miss(
          {{engine::Cause::Structure,
            "the function did something else than in the call before: " + difference, "", ""}});
  }
  entry.recording = std::make_shared<JitRecording>(std::move(made));
  entry.is_ready = is_ready;
  if (entry.is_ready) {
    entry.is_comparable = settings().jit == 2 || may_capture;
    if (!entry.is_comparable)
      for (JitValue& value : entry.recording->values) value.host_owner.reset();
    for (JitRun& run : entry.recording->runs)
      if (run.ready) run.ready->is_recorded = true;
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

}  // namespace plugrad::jit_detail
