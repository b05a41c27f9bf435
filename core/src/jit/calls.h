// One jitted function: the recordings of its calls by signature, and their replays.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/internal.h"
#include "jit/cuts.h"
#include "jit/signature.h"
#include "jit/trace.h"

namespace plugrad::jit_detail {

/// While one lives, jitted functions that this thread calls run as they are: parts of what it
/// records.
class PLUGRAD_INTERNAL InlineScope {
 public:
  InlineScope();
  ~InlineScope();
  InlineScope(const InlineScope&) = delete;
  InlineScope& operator=(const InlineScope&) = delete;
};

/// Thread-safe; calls run one after another.
/// Whether calls of jitted functions are a part of what this thread records now.
PLUGRAD_INTERNAL bool is_part_of_recording();

class JitReplay;

class JitCalls {
 public:
  using Function = std::function<JitOutput()>;

  /// `is_pure`: the function depends on its arguments alone, so that one call makes a recording.
  /// `has_cuts`: it may read values, and runs in each call (jit/cuts.h).
  JitCalls(bool is_pure, bool has_cuts, WriteView write_view)
      : is_pure_(is_pure), write_view_(write_view) {
    if (has_cuts) cuts_.emplace();
  }

  /// Runs `function`, or replays a recorded call with such arguments. `own`: the arguments that are
  /// no tensors; `modes`: what else the call depends on; `describe`: may be empty. Errors: User for
  /// what a replay could not repeat; those of the function and its kernels.
  JitOutput call(std::span<const engine::StatePtr> arguments, std::span<const uint64_t> own,
                 std::span<const uint64_t> modes, const Function& function,
                 const DescribeArguments& describe);
  /// The number of recordings that can be replayed now.
  size_t recordings() const;
  /// How many calls were replayed, and why the others were not.
  std::string explain() const;
  bool is_pure() const { return is_pure_; }
  /// Of a recorded call; a replay gives no more.
  size_t most_results() const { return most_results_; }

 private:
  struct Entry {
    std::vector<uint64_t> key{};  // several may have the same: see JitReplay::has_the_gradients
    std::shared_ptr<JitRecording> recording{};  // of the last call
    bool is_ready = false;                      // two consecutive calls made this recording, or one
    bool is_comparable = false;                 // may be compared with a call of the function
    int calls = 0;                              // recorded calls
    uint64_t last_used = 0;
  };
  static constexpr size_t kMostEntries = 32;
  static constexpr int kMostCalls = 4;

  struct Captured {
    std::weak_ptr<engine::TensorState> state;
    uint64_t number;
  };
  void add_captured(std::vector<uint64_t>& words,
                    std::span<const engine::StatePtr> arguments) const;
  void note_captured(const JitRecording& recording);
  /// Hashes of the numbers and of the sizes among the arguments.
  struct Varying {
    uint64_t numbers, sizes;
    bool operator==(const Varying&) const = default;
  };
  /// Of calls that differ in nothing else.
  struct Values {
    std::vector<Varying> recorded;  // the first ones
    size_t shapes = 0;              // distinct ones among them
    std::vector<Varying> plain;     // the last ones of which the function ran without recording
  };
  /// The entry of a call, or null; `replay` is made of its recording if it has one.
  Entry* find_entry(const std::vector<uint64_t>& key, std::span<const engine::StatePtr> arguments,
                    std::optional<JitReplay>& replay);
  Entry& add_entry(std::vector<uint64_t> key);
  bool is_one_of_many(std::span<const uint64_t> key, size_t numbers, size_t sizes);
  JitOutput record(Entry& entry, std::span<const engine::StatePtr> arguments,
                   const Function& function);
  JitRecording trace(JitOutput& output, std::span<const engine::StatePtr> arguments, bool keeps,
                     const Function& function);
  JitOutput compared(const Entry& entry, std::span<const engine::StatePtr> arguments,
                     const Function& function);
  void note_miss(std::vector<engine::Difference> differences);
  void note_new(std::vector<engine::Fact> facts, bool has_equal_key);
  void warn_of_misses();
  std::string name_of_varying() const;  // of what differed last
  void keep(Entry& entry, JitRecording made);

  std::atomic<size_t> most_results_ = 0;
  const bool is_pure_;
  std::optional<JitCuts> cuts_;
  const WriteView write_view_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  std::unordered_map<const engine::TensorState*, Captured>
      captured_;           // tensors captured by any recorded call
  uint64_t captures_ = 0;  // number of the last captured tensor
  uint64_t calls_ = 0;
  std::unordered_map<uint64_t, Values> values_;  // by the rest of the key
  uint64_t misses_in_a_row_ = 0;
  bool has_warned_ = false;  // of them
  uint64_t recorded_calls_ = 0, plain_calls_ = 0;
  engine::Kinds kinds_;  // of calls for which entries were made
  engine::Misses misses_;
};

/// Runs a recording on other values.
class JitReplay {
 public:
  JitReplay(engine::Session& session, JitRecording& recording,
            std::span<const engine::StatePtr> arguments);
  /// Whether the tensors whose gradients are used have or lack one, as recorded. Recordings that
  /// differ in it are kept side by side: gradients add up over calls.
  bool has_the_gradients() const;
  /// Nothing if everything that it captured still exists, with the dtype, device, shape and spec
  /// that was recorded; else what differs.
  std::optional<engine::Difference> invalid_because();
  /// Whether each argument that may also be captured is the recorded tensor.
  bool has_captured_arguments() const;
  /// Errors leave every tensor unchanged; if the device failed midway, tensors whose memory was
  /// donated may be gone (schedule/memory/donations.cpp).
  JitOutput run(WriteView write_view);

 private:
  void require_no_tape();
  /// Errors: User for indices out of range, if the host has them.
  void require_indices();
  engine::TensorState& source_of(const JitValue& value);
  engine::ValuePtr quick_value(const engine::TensorState& state);
  void bind();
  engine::ValuePtr random_key(const JitValue& value);
  void find_constants();
  void regroup(const JitRun& run);
  void run_plans();
  std::vector<engine::ValuePtr> run_one(const JitRun& run, std::span<const engine::ValuePtr> inputs,
                                        bool is_last);
  std::vector<engine::ValuePtr> run_with_constants(JitConstants& constants,
                                                   std::vector<engine::ValuePtr>& inputs,
                                                   bool is_last);
  std::vector<engine::ValuePtr> run_donating(const JitRun& run,
                                             std::span<const engine::ValuePtr> inputs);
  bool is_wanted_afterwards(uint32_t number) const;
  uint32_t whole_of(uint32_t number) const;
  bool is_joined(uint32_t number) const;
  engine::TensorState* only_holder(const JitRun& run, const schedule::Donation& pair,
                                   std::span<engine::TensorState* const> renewed) const;
  std::vector<engine::TensorState*> renewed() const;
  Id base_of(const engine::TensorState& state) const;
  Id node_of(const JitResult& result);
  engine::StatePtr made(const JitResult& result);
  struct Updated {
    Id node = kNoId;                       // of a tensor; kNoId: of a view, which has it already
    engine::StatePtr grad;                 // of a gradient
    std::vector<engine::ShownNode> shown;  // in the tensor's views
  };
  bool is_view(const JitUpdate& update) const;
  Updated updated(const JitUpdate& update);
  bool has_the_counts();
  bool may_refuse_writes();
  bool has_overlaps();
  Id count_node(uint32_t value);
  void update(const JitUpdate& update, Updated&& to) noexcept;
  JitOutput results();

  engine::Session& session_;
  JitRecording& recording_;
  std::vector<engine::StatePtr> states_;  // by tensor
  std::vector<engine::ValuePtr> values_;  // by number
  std::vector<engine::StatePtr>
      counts_;  // the count of an axis, by value number; null for other values
};

}  // namespace plugrad::jit_detail
