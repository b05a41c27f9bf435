// Records a call of a jitted function while it runs: the tensors it reads, the plans it runs, the
// tensors it changes or returns. The session reports through CallObserver; tensor functions call
// JitTrace directly. Inactive outside a jitted call.
#pragma once

#include <deque>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/recording/call_observer.h"
#include "jit/recording.h"

namespace plugrad::jit_detail {

/// The result of the function: its tensors in order, and words that encode their containers.
struct JitOutput {
  std::vector<engine::StatePtr> tensors;  // null: undefined
  std::vector<uint64_t> structure;
};

/// A view that existed before the call, and its value after it.
struct AssignedView {
  engine::StatePtr view, value;
};
/// Gives a view, hence its base, a value: tensor::write_view(), of a room above this one.
using WriteView = void (*)(engine::TensorState& view, const engine::TensorState& value);

/// Observes this thread during its lifetime. Each existing tensor that the function reads gets a
/// node of its own meanwhile, so that every value has one origin.
class JitTrace final : public engine::CallObserver {
 public:
  /// The arguments must have values and no pending assignments. Equal handles are one argument.
  JitTrace(engine::Session& session, std::span<const engine::StatePtr> arguments);
  ~JitTrace() override;
  JitTrace(const JitTrace&) = delete;
  JitTrace& operator=(const JitTrace&) = delete;

  /// The trace of this thread; null outside a call and while earlier values are computed.
  static JitTrace* active();
  uint64_t call() const override { return call_; }

  void use(engine::TensorState& state);
  void use_gradient(engine::TensorState& leaf);
  /// The function gives the leaf another gradient, or none, whatever it had.
  void replace_gradient(const engine::TensorState& leaf) { replaced_.insert(&leaf); }
  void take_gradients(std::string_view function);
  void ran(const std::shared_ptr<engine::ReadyPlan>& ready,
           std::span<const engine::ValuePtr> inputs,
           std::span<const engine::ValuePtr> roots) override;
  void joined(const engine::ValuePtr& whole) override;
  void brought_from_host(const engine::ValuePtr& value) override;
  /// Numbers of the inputs that are values of captured tensors not assigned so far.
  std::vector<uint32_t> constant_inputs(std::span<const engine::ValuePtr> inputs) const override;
  void drew_random(Id key_node, const engine::RandomState& at, RandomKey key);
  void step_done() override;
  /// Notes indices that the function uses. Errors: User if the host had them at the call's begin
  /// and one is out of range; replays check again.
  void check(const engine::TensorState& indices, const engine::IndexRange& range);

  /// Computes the pending results and returns the recording. `keeps` false: the recording is only
  /// compared, and may leave tensors that no replay renews. Errors: User.
  JitRecording finish(const JitOutput& output, bool keeps);
  /// After finish(): what is to be written once the trace is gone. Without that, the views and their
  /// bases have the values that they had before the call.
  std::vector<AssignedView> assigned_views();

 private:
  struct Seen {  // a tensor that existed before the call, or its gradient
    std::weak_ptr<engine::TensorState> state;
    engine::StatePtr before, during;  // its original node; its node unless assigned
    std::weak_ptr<engine::TensorState> gradient;
  };
  struct Count {  // the count of an axis of existing tensors
    engine::StatePtr before, during;
    uint32_t value;
  };
  void restore() noexcept;
  void hide_constants();
  const Count* known_count(Id node) const;
  const Count& cut_count(Id count, uint32_t tensor, uint32_t axis);
  Id with_counts(Id node, const engine::TensorState& state, uint32_t tensor, bool is_gradient);
  std::vector<JitCount> counts_of(Id node);
  void require_no_overlap(uint32_t assigned) const;
  void give_back_counts(engine::TensorState& state);
  void add_tensor(engine::TensorState& state, uint32_t argument);
  void cut_off(engine::TensorState& state, JitValue origin);
  engine::ValuePtr own_value(engine::TensorState& state);
  engine::ValuePtr own_parts(const engine::Value& whole);
  bool is_before(const engine::TensorState& state) const { return state.call != call_; }
  engine::StatePtr handle(Id node, uint32_t device);
  uint32_t number_of(const engine::ValuePtr& value);
  void split(const engine::ValuePtr& whole);
  std::vector<uint32_t> parts_of(const engine::Value& whole);
  uint32_t add_value(const engine::ValuePtr& value, JitValue made);
  bool is_of_constants(const engine::Value& value);
  JitResult result_of(engine::TensorState& state);
  JitResult tensor_itself(engine::TensorState& state);
  std::vector<engine::TensorState*> left_behind(const JitOutput& output);
  void note_updates();
  void note_gradients(uint32_t tensor, engine::TensorState& leaf);
  void note_results(const JitOutput& output);
  std::vector<std::vector<int64_t>> kept_shapes(const JitOutput& output);
  void require_nothing_kept(const JitOutput& output);
  bool is_kept_gradient(const engine::TensorState& leaf) const;

  engine::Session& session_;
  engine::CallObserver* const outer_;
  const uint64_t call_;
  const engine::RandomState random_;
  JitRecording recording_;
  std::vector<Seen> seen_;
  std::vector<size_t> seen_of_;  // by tensor: index into seen_
  bool is_whole_ = true;         // false if memory ran out while a tensor was added
  std::deque<Count> counts_;
  std::unordered_map<const engine::TensorState*, uint32_t> tensor_of_;
  std::unordered_map<const engine::TensorState*, uint32_t>
      gradient_of_;                                          // existing gradients, to their tensors
  std::unordered_set<const engine::TensorState*> replaced_;  // leaves whose gradients were
  std::unordered_map<const engine::Value*, uint32_t> value_of_;
  std::unordered_map<const engine::Value*, std::vector<std::byte>>
      host_;                                         // integers that the host had
  std::vector<const engine::TensorState*> used_up_;  // gradients that an optimiser's step consumed
  std::vector<std::vector<int64_t>> cut_;            // shapes of tensors that have a tape
  std::vector<std::pair<engine::StatePtr, engine::ValuePtr>>
      hidden_;  // values of constants alone, by their nodes
};

}  // namespace plugrad::jit_detail
