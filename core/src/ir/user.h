// The args of the two ops for user-written code.
//
//   Function    call << 16 | output. Sources: the output's value, then those of the gradient, the
//               function's inputs first. call kSlopeCall: value, x and the derivative by x.
//               output kRangeCheck: indices and their report; call is the range's number
//               (engine/plan/index_ranges.h).
//   UserKernel  list: kernel number, or loop body number | kLoopBit; output; output count; dtype,
//               rank, sizes… of each output. Nodes that differ only in `output` are one launch.
#pragma once

#include "ir/graph.h"

namespace plugrad {

inline constexpr uint32_t kMostOutputs = 1 << 16;

inline constexpr uint64_t kSlopeCall = 0;

/// Not an output of a call: calls have fewer outputs.
inline constexpr uint32_t kRangeCheck = kMostOutputs - 1;

inline uint64_t function_arg(uint64_t call, uint32_t output) {
  return call << 16 | output;
}
inline uint64_t function_call(uint64_t arg) {
  return arg >> 16;
}
inline uint32_t function_output(uint64_t arg) {
  return static_cast<uint32_t>(arg & 0xffff);
}

inline bool is_range_check(const Node& node) {
  return node.op == Op::Function && function_output(node.arg) == kRangeCheck;
}

/// Marks the number of a UserKernel node that runs a recorded loop (engine/execute/loop_body.h).
inline constexpr uint32_t kLoopBit = 1u << 31;

/// Dtype and shape of an output.
struct OutputForm {
  DType dtype;
  std::span<const int64_t> shape;
};

/// Parses the list of a UserKernel node.
class UserKernelArg {
 public:
  explicit UserKernelArg(std::span<const int64_t> list) : list_(list) {}
  uint32_t kernel() const { return static_cast<uint32_t>(list_[0]); }
  uint32_t output() const { return static_cast<uint32_t>(list_[1]); }
  uint32_t output_count() const { return static_cast<uint32_t>(list_[2]); }
  OutputForm form(uint32_t output) const {
    size_t at = 3;
    for (; output > 0; --output) at += 2 + static_cast<size_t>(list_[at + 1]);
    return {static_cast<DType>(list_[at]),
            list_.subspan(at + 2, static_cast<size_t>(list_[at + 1]))};
  }

 private:
  std::span<const int64_t> list_;
};

}  // namespace plugrad
