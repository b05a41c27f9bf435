// SPDX-License-Identifier: Apache-2.0
// Runs a kernel IR block on the calling thread, exactly as docs/kernel-ir.md says: every operation
// rounds once (the contract flag is ignored), and what hardware leaves undefined is an error or a
// fixed value.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "plugrad/plugin_api/device.h"
#include "plugrad/sdk/ir_view.h"

namespace plugrad::sdk {

struct InterpreterBuffer {
  void* data = nullptr;
  uint64_t size_bytes = 0;
};

struct InterpreterLaunch {
  std::span<const InterpreterBuffer> buffers;  // one for each buffer parameter, in order
  std::span<const uint64_t> scalars;           // one for each scalar parameter, bits as in a CONST
  std::array<uint64_t, 3> group_count{1, 1, 1};
  std::array<uint32_t, 3> local_size{1, 1, 1};
  // Loop iterations of all work-items together before the launch ends with TIMED_OUT.
  uint64_t iteration_limit = UINT64_MAX;
};

class Interpreter {
 public:
  // `tensor_cores` is the table that WMMA numbers; it is copied. Throws StatusError:
  // INVALID_ARGUMENT for a block that does not decode, UNSUPPORTED for a WMMA that is not as its
  // tensor core, LIMIT_EXCEEDED for a group whose values and arrays need more than 4 GiB.
  explicit Interpreter(IrView ir, std::span<const pgr_tensor_core> tensor_cores = {});
  ~Interpreter();
  Interpreter(Interpreter&&) noexcept;

  const IrView& ir() const;

  // What `run` checks before it starts, on the calling thread: whether the launch fits the kernel.
  // Throws StatusError (INVALID_ARGUMENT).
  void check(const InterpreterLaunch& launch) const;

  // Any thread, any number at once. Throws StatusError: INVALID_ARGUMENT where the launch does not
  // fit the kernel, LAUNCH_FAILED where an index leaves its buffer or array, a barrier is not
  // reached by all work-items of a group, or a WMMA by all that share it; the message names
  // instruction, index and limits.
  void run(const InterpreterLaunch& launch) const;

  struct Program;

 private:
  std::unique_ptr<Program> program_;
};

}  // namespace plugrad::sdk
