// The args of the two ops that stand for what a user wrote.
//
//   Function    call << 16 | output. Sources: the output's value, then what the gradient needs: the
//               function's inputs first. All outputs of a call have one call number. Call 0 is no
//               user's: its sources are the value, x, and the derivative of the value by x.
//               With output kRangeCheck it is no call: its sources are indices, then the report of
//               the first that lies outside of its range (engine/plan/index_ranges.h), whose number
//               takes the place of the call's.
//   UserKernel  list: kernel number, or number of a loop's body with kLoopBit, output, number of
//               outputs, then dtype, rank, sizes… of each output. The outputs of one launch are the
//               nodes that differ in `output` alone.
#pragma once

#include "ir/graph.h"

namespace plugrad {

inline constexpr uint32_t kMostOutputs = 1 << 16;

inline constexpr uint64_t kSlopeCall = 0;

/// No output of a call: those are fewer.
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

/// A stored array as a kernel writes it.
struct OutputForm {
  DType dtype;
  std::span<const int64_t> shape;
};

/// Reads the list of a UserKernel node.
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
