// The recording of one call of a jitted function: plans run over numbered values, and the tensors
// that denote some of these values afterwards.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/plan/ready_plan.h"
#include "engine/session.h"

namespace plugrad::jit_detail {

class JitConstants;

/// Computes the eight bytes of a random key from a state of the generator.
using RandomKey = std::array<uint32_t, 2> (*)(const engine::RandomState& at);

template <class T>
bool is_same_owner(const std::weak_ptr<T>& a, const std::weak_ptr<T>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

/// The source of an axis count (ir/extents.h): a value by number.
struct JitCount {
  static constexpr uint32_t kItself = UINT32_MAX;
  uint32_t axis = 0;  // kItself: the tensor itself is the count
  uint32_t value = 0;
  int64_t least = 0;
  bool operator==(const JitCount&) const = default;
};

/// A tensor that existed before the call: an argument or one that the function captures.
struct JitTensor {
  static constexpr uint32_t kCaptured = UINT32_MAX;
  uint32_t argument = kCaptured;               // its number
  std::weak_ptr<engine::TensorState> state{};  // the tensor in the recorded call
  // The argument was this tensor in every recorded call, so the function may also capture it.
  bool may_be_captured = false;
  std::vector<int64_t> shape{};
  DType dtype = DType::Void;
  uint32_t device = 0;
  std::vector<uint64_t> facts{};  // when the call began (jit/facts.h), as are the next ones
  std::vector<uint64_t> gradient_facts{};  // empty: no gradient is used
  bool has_no_gradient = false;            // then, and the function used that
  bool requires_grad = false;
  std::vector<JitCount> counts{};
  // A Python-like number, which takes dtype and device from its operands and is part of the graph.
  bool is_number = false;
  engine::StatePtr number{};  // the number in the recorded call
};

/// The source of a value in a replay.
struct JitValue {
  enum class Kind : uint8_t {
    Tensor,    ///< of tensor `tensor` when the call began
    Count,     ///< of axis `axis` of that tensor when the call began
    Gradient,  ///< of the gradient of that tensor when the call began
    Random,    ///< a key of the generator, `counter` words after its state at the call's begin
    Fixed,     ///< the same in every call
    Made,      ///< by a run
  };
  Kind kind = Kind::Fixed;
  uint32_t tensor = 0;
  uint32_t axis = 0;
  uint64_t counter = 0;
  RandomKey key = nullptr;
  uint32_t device = 0;       // Random: target device of the key
  engine::ValuePtr value{};  // Fixed: itself
  // For a Fixed value that the function copied from the host.
  std::span<const std::byte> host{};
  std::shared_ptr<const void> host_owner{};
};

/// Indices in a value that existed before the call and that the host may have.
struct JitIndices {
  uint32_t value = 0;
  engine::IndexRange range;
};

/// One run of a plan, on values by number. Without a plan: takes the sharded value that is its input
/// apart, or joins parts to one.
struct JitRun {
  std::shared_ptr<engine::ReadyPlan> ready;
  std::vector<uint32_t> inputs, roots;
  engine::ValuePtr joined{};    // the value to join, without its parts; null: takes apart
  std::vector<bool> is_here{};  // of the joined value: which positions are of this process
};

/// The node that a tensor denotes after the call.
struct JitResult {
  enum class Kind : uint8_t {
    Undefined,
    Value,     ///< value `number`, in `shape`
    Constant,  ///< the node of `constant`
    Tensor,    ///< the handle of tensor `number` itself
    Same,      ///< the handle that is result `number`
  };
  Kind kind = Kind::Undefined;
  uint32_t number = 0;
  std::vector<int64_t> shape{};
  engine::StatePtr constant{};
  std::vector<JitCount> counts{};
};

/// Tensor `tensor` or its gradient denotes another node after the call.
struct JitUpdate {
  uint32_t tensor = 0;
  bool is_gradient = false;
  JitResult to{};
};

struct JitRecording {
  std::vector<JitTensor> tensors;
  std::vector<JitValue> values;
  std::vector<JitRun> runs;
  std::vector<JitIndices> indices;
  std::vector<JitResult> results;
  std::vector<uint64_t> structure;  // of the results, defined by the caller
  std::vector<JitUpdate> updates;
  std::vector<uint32_t> marked;  // tensors that the function marked with requires_grad
  uint64_t random_words = 0;     // drawn in the call
  bool takes_gradients = false;
  // By run, null for a run without a constant part; computed by the first replay.
  std::vector<std::shared_ptr<JitConstants>> constants;
  // Numbers of the tensors that share elements with others, and of the tensors whose elements those
  // are, when the last replay found that it assigns to none that another one shows.
  std::vector<uint64_t> apart;
  bool has_strangers = false;  // used a value of unknown origin, e.g. of another thread

  /// Empty if this recording equals `other`; else the first difference.
  std::string difference_from(const JitRecording& other) const;
};

}  // namespace plugrad::jit_detail
