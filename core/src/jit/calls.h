// One jitted function: what its calls did, by what they were given, and their replays.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "jit/trace.h"

namespace plugrad::jit_detail {

/// Calls may come from any thread; they run one after another.
class JitCalls {
 public:
  using Function = std::function<JitOutput()>;

  /// Runs `function`, or replays what it did with arguments like these. `key`: what else the call
  /// depends on. Errors: User, for what a replay could not do again; what the function and its
  /// kernels throw.
  JitOutput call(std::span<const engine::StatePtr> arguments, std::span<const uint64_t> key,
                 const Function& function);
  /// How many kinds of calls can be replayed now.
  size_t recordings() const;

 private:
  struct Entry {
    std::vector<uint64_t> key{};
    std::shared_ptr<JitRecording> recording{};  // of the last call
    bool is_ready = false;                      // two calls in a row did this
    bool is_comparable = false;                 // with calls of the function
    int calls = 0;                              // that were not replays
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
  Entry& entry_of(std::vector<uint64_t> key);
  JitOutput record(Entry& entry, std::span<const engine::StatePtr> arguments,
                   const Function& function);
  JitRecording trace(JitOutput& output, std::span<const engine::StatePtr> arguments, bool keeps,
                     const Function& function);
  JitOutput compared(const Entry& entry, std::span<const engine::StatePtr> arguments,
                     const Function& function);
  void warn_of_many();
  void keep(Entry& entry, JitRecording made);

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  std::unordered_map<const engine::TensorState*, Captured>
      captured_;           // by any call that was recorded
  uint64_t captures_ = 0;  // counted, for their numbers
  uint64_t uses_ = 0;
  uint64_t dropped_ = 0;  // entries that others took the place of
};

/// The recording's runs on other values.
class JitReplay {
 public:
  JitReplay(engine::Session& session, JitRecording& recording,
            std::span<const engine::StatePtr> arguments);
  /// Whether what it captured is still there.
  bool is_valid();
  /// Whether the arguments that the function may capture too are the tensors that they were.
  bool has_captured_arguments() const;
  /// Errors leave every tensor as it was; where the device failed midway, those that were renewed
  /// in their own memory may be gone (plan.h).
  JitOutput run();

 private:
  void require_no_tape();
  /// Errors: User for indices outside of their ranges that the host knows.
  void require_indices();
  engine::TensorState& source_of(const JitValue& value);
  engine::ValuePtr quick_value(const engine::TensorState& state);
  void bind();
  engine::ValuePtr random_key(const JitValue& value);
  void find_constants();
  void run_plans();
  std::vector<engine::ValuePtr> run_one(const JitRun& run, std::span<const engine::ValuePtr> inputs,
                                        bool is_last);
  std::vector<engine::ValuePtr> run_with_constants(JitConstants& constants,
                                                   std::vector<engine::ValuePtr>& inputs,
                                                   bool is_last);
  std::vector<engine::ValuePtr> run_in_place(const JitRun& run,
                                             std::span<const engine::ValuePtr> inputs);
  bool is_wanted_afterwards(uint32_t number) const;
  engine::TensorState* only_holder(const JitRun& run, const schedule::InPlace& pair,
                                   std::span<engine::TensorState* const> renewed) const;
  std::vector<engine::TensorState*> renewed() const;
  Id base_of(const engine::TensorState& state) const;
  Id node_of(const JitResult& result);
  bool has_the_counts();
  Id count_node(uint32_t value);
  void update(const JitUpdate& update);
  JitOutput results();

  engine::Session& session_;
  JitRecording& recording_;
  std::vector<engine::StatePtr> states_;  // by tensor
  std::vector<engine::ValuePtr> values_;  // by number
  std::vector<engine::StatePtr>
      counts_;  // what counts an axis, by number of the value; null for others
};

}  // namespace plugrad::jit_detail
