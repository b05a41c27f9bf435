// What one call of a jitted function did, as data: plans run over numbered values, and the tensors
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

/// Makes the eight bytes of a random key of a state of the generator.
using RandomKey = std::array<uint32_t, 2> (*)(const engine::RandomState& at);

template <class T>
bool is_same_owner(const std::weak_ptr<T>& a, const std::weak_ptr<T>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

/// Where the count of a counted axis (ir/extents.h) comes from: a value by number.
struct JitCount {
  static constexpr uint32_t kItself = UINT32_MAX;
  uint32_t axis = 0;  // kItself: of the tensor that is such a count
  uint32_t value = 0;
  int64_t least = 0;
  bool operator==(const JitCount&) const = default;
};

/// A tensor that was there before the call: an argument, or one that the function captures.
struct JitTensor {
  static constexpr uint32_t kCaptured = UINT32_MAX;
  uint32_t argument = kCaptured;               // its number
  std::weak_ptr<engine::TensorState> state{};  // what it was in the recorded call
  // An argument that was this tensor in every recorded call: the function may capture it too.
  bool may_be_captured = false;
  std::vector<int64_t> shape{};
  DType dtype = DType::Void;
  uint32_t device = 0;
  bool requires_grad = false;  // when the call began
  std::vector<JitCount> counts{};
  // Of a number that takes its dtype and device from what it meets: part of the recorded graph.
  bool is_number = false;
  engine::StatePtr number{};  // what it denoted
};

/// Where a value comes from in a replay.
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
  uint32_t device = 0;       // Random: where the key is wanted
  engine::ValuePtr value{};  // Fixed: itself
  // Of a fixed one that the function brought from the host.
  std::span<const std::byte> host{};
  std::shared_ptr<const void> host_owner{};
};

/// Indices that are a value of before the call, which the host may know.
struct JitIndices {
  uint32_t value = 0;
  engine::IndexRange range;
};

/// One plan, on values by number.
struct JitRun {
  std::shared_ptr<engine::ReadyPlan> ready;
  std::vector<uint32_t> inputs, roots;
};

/// What a tensor denotes after the call.
struct JitResult {
  enum class Kind : uint8_t {
    Undefined,
    Value,     ///< value `number`, in `shape`
    Constant,  ///< what `constant` denotes
    Tensor,    ///< the handle of tensor `number` itself
    Same,      ///< the handle that is result `number`
  };
  Kind kind = Kind::Undefined;
  uint32_t number = 0;
  std::vector<int64_t> shape{};
  engine::StatePtr constant{};
  std::vector<JitCount> counts{};
};

/// Tensor `tensor`, or its gradient, denotes something else after the call.
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
  std::vector<uint64_t> structure;  // of the results, as the caller knows it
  std::vector<JitUpdate> updates;
  std::vector<uint32_t> marked;  // tensors that the function marked with requires_grad
  uint64_t random_words = 0;     // drawn in the call
  bool takes_gradients = false;
  // By run, null where nothing of it is constant; found by the first replay.
  std::vector<std::shared_ptr<JitConstants>> constants;
  bool has_strangers = false;  // a value of unknown origin, such as of another thread's step

  /// Empty where a call that does what `other` did would do this; else the first difference.
  std::string difference_from(const JitRecording& other) const;
};

}  // namespace plugrad::jit_detail
