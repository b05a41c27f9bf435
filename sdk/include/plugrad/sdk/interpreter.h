// SPDX-License-Identifier: Apache-2.0
// Runs a kernel IR block on the calling thread, exactly as docs/kernel-ir.md specifies: every
// operation rounds once (the contract flag is ignored). Behaviour that hardware leaves undefined is
// an error or has a fixed value.
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
  std::span<const InterpreterBuffer> buffers;  // one per buffer parameter, in order
  std::span<const uint64_t> scalars;           // one per scalar parameter, bits as in a CONST
  std::array<uint64_t, 3> group_count{1, 1, 1};
  std::array<uint32_t, 3> local_size{1, 1, 1};
  // Total loop iterations of all work-items after which the launch ends with TIMED_OUT.
  uint64_t iteration_limit = UINT64_MAX;
};

class Interpreter {
 public:
  // `tensor_cores` is the table that WMMA indexes; it is copied. Throws StatusError:
  // INVALID_ARGUMENT for a block that does not decode, UNSUPPORTED for a WMMA that does not match
  // its tensor core, LIMIT_EXCEEDED if the values and arrays of a group need more than 4 GiB.
  explicit Interpreter(IrView ir, std::span<const pgr_tensor_core> tensor_cores = {});
  ~Interpreter();
  Interpreter(Interpreter&&) noexcept;

  const IrView& ir() const;

  // The checks that `run` makes first: whether the launch fits the kernel. Throws StatusError
  // (INVALID_ARGUMENT).
  void check(const InterpreterLaunch& launch) const;

  // Thread-safe. Throws StatusError: INVALID_ARGUMENT if the launch does not fit the kernel;
  // LAUNCH_FAILED if an index is out of bounds, or a barrier or WMMA is not reached by all
  // work-items that share it. The message contains the instruction, the index and its limits.
  void run(const InterpreterLaunch& launch) const;

  struct Program;

 private:
  std::unique_ptr<Program> program_;
};

}  // namespace plugrad::sdk
