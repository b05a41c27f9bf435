// A call of a jitted function while it runs: which tensors it reads, which plans run, what it
// leaves behind. The session and the tensor functions tell it; outside such a call nobody listens.
#pragma once

#include <deque>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/jit_recording.h"

namespace plugrad::engine {

/// What the function returned: its tensors in order, and words that say what they were in.
struct JitOutput {
  std::vector<StatePtr> tensors;  // null: undefined
  std::vector<uint64_t> structure;
};

/// Listens to this thread from its making to its end. Every tensor of before that the function
/// reads gets a node of its own for that time, so that each value has one origin.
class JitTrace {
 public:
  /// The arguments have no pending assignments, and values. Equal handles are one argument.
  JitTrace(Session& session, std::span<const StatePtr> arguments);
  ~JitTrace();
  JitTrace(const JitTrace&) = delete;
  JitTrace& operator=(const JitTrace&) = delete;

  /// That of this thread; null outside a call, or while values of before are computed.
  static JitTrace* active();
  uint64_t call() const { return call_; }

  // What is told.
  void use(TensorState& state);
  void use_gradient(TensorState& leaf);
  void take_gradients(std::string_view function);
  void ran(const std::shared_ptr<ReadyPlan>& ready, std::span<const ValuePtr> inputs,
           std::span<const ValuePtr> roots);
  void brought_from_host(const ValuePtr& value);
  /// Numbers of the inputs that are values of captured tensors which the call did not assign so
  /// far, ascending.
  std::vector<uint32_t> constant_inputs(std::span<const ValuePtr> inputs) const;
  void drew_random(Id key_node, const RandomState& at, RandomKey key);
  void step_done();
  /// Indices that the function uses. Errors: User where the host knew them when the call began, and
  /// one lies outside; replays look as well.
  void check(const TensorState& indices, const IndexRange& range);
  /// Errors: User.
  [[noreturn]] static void refuse_read(std::string_view function);

  /// Computes what the function left and says what it did. `keeps` false: a recording that is
  /// compared only, and may leave tensors that no replay makes. Errors: User.
  JitRecording finish(const JitOutput& output, bool keeps);

 private:
  struct Seen {  // a tensor of before, or a gradient
    std::weak_ptr<TensorState> state;
    StatePtr before, during;  // handles of what it denoted, and denotes unless assigned
    std::weak_ptr<TensorState> gradient;
  };
  struct Count {  // what counts an axis of tensors of before
    StatePtr before, during;
    uint32_t value;
  };
  void hide_constants();
  const Count* known_count(Id node) const;
  const Count& cut_count(Id count, uint32_t tensor, uint32_t axis);
  Id with_counts(Id node, const TensorState& state, uint32_t tensor, bool is_gradient);
  std::vector<JitCount> counts_of(Id node);
  void give_back_counts(TensorState& state);
  void add_tensor(TensorState& state, uint32_t argument);
  bool is_number(const TensorState& state);
  void cut_off(TensorState& state, JitValue origin);
  ValuePtr own_value(TensorState& state);
  bool is_before(const TensorState& state) const { return state.call != call_; }
  StatePtr handle(Id node, uint32_t device);
  uint32_t number_of(const ValuePtr& value);
  uint32_t add_value(const ValuePtr& value, JitValue made);
  bool is_of_constants(const Value& value);
  JitResult result_of(TensorState& state);
  JitResult tensor_itself(TensorState& state);
  std::vector<TensorState*> left_behind(const JitOutput& output);
  void note_updates();
  void note_gradients(uint32_t tensor, TensorState& leaf);
  void note_results(const JitOutput& output);
  std::vector<std::vector<int64_t>> kept_shapes(const JitOutput& output);
  void require_nothing_kept(const JitOutput& output);
  bool is_kept_gradient(const TensorState& leaf) const;

  Session& session_;
  JitTrace* const outer_;
  const uint64_t call_;
  const RandomState random_;
  JitRecording recording_;
  std::vector<Seen> seen_;
  std::vector<size_t> seen_of_;  // by tensor
  std::deque<Count> counts_;
  std::unordered_map<const TensorState*, uint32_t> tensor_of_;
  std::unordered_map<const TensorState*, uint32_t> gradient_of_;  // of before, to its tensor
  std::unordered_map<const Value*, uint32_t> value_of_;
  std::unordered_map<const Value*, std::vector<std::byte>> host_;  // integers that the host knew
  std::vector<const TensorState*> used_up_;            // gradients that a step was made of
  std::vector<std::vector<int64_t>> cut_;              // shapes of tensors that lead back to leaves
  std::vector<std::pair<StatePtr, ValuePtr>> hidden_;  // values of constants alone, by their nodes
};

}  // namespace plugrad::engine
