// Runs generated kernels on the SDK's interpreter, so that codegen is tested without a device.
#pragma once

#include <cstring>
#include <vector>

#include "codegen/codegen.h"
#include "plugrad/sdk/interpreter.h"

namespace plugrad::test {

/// A device with 4 lanes, 16 vector registers, 2 threads, that claims every op unless withdrawn.
inline pgr_device_caps small_cpu(uint32_t f32_lanes = 4) {
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  for (uint32_t& dtypes : caps.op_dtypes) dtypes = 0xffffffff;
  for (uint32_t& lanes : caps.vector_lanes) lanes = f32_lanes;
  caps.vector_lanes[PGR_DTYPE_F64] = std::max(1u, f32_lanes / 2);
  caps.vector_registers = 16;
  caps.threads = 2;
  caps.subgroup_size = 1;
  caps.buffer_align_bytes = 16;
  return caps;
}

/// Runs `code` over memory of any dtype, in the order of its parameters.
inline void run_buffers(const codegen::KernelCode& code,
                        const std::vector<sdk::InterpreterBuffer>& memory) {
  const sdk::Interpreter interpreter(sdk::decode_ir(code.ir));
  sdk::InterpreterLaunch launch;
  launch.buffers = memory;
  std::copy_n(code.group_count, 3, launch.group_count.begin());
  std::copy_n(code.local_size, 3, launch.local_size.begin());
  interpreter.run(launch);
}

/// The same over buffers of floats.
inline void run(const codegen::KernelCode& code, const std::vector<std::vector<float>*>& buffers) {
  std::vector<sdk::InterpreterBuffer> memory;
  for (std::vector<float>* b : buffers) memory.push_back({b->data(), b->size() * sizeof(float)});
  run_buffers(code, memory);
}

/// Small integers, so that sums are exact in any order.
inline std::vector<float> small_integers(int64_t n, int seed) {
  std::vector<float> out(static_cast<size_t>(n));
  uint32_t state = static_cast<uint32_t>(seed) * 2654435761u + 1;
  for (float& v : out) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(static_cast<int>(state >> 29) - 4);
  }
  return out;
}

/// The product of a (m x k) and b (k x n) by three loops.
inline std::vector<float> matmul_loops(const std::vector<float>& a, const std::vector<float>& b,
                                       int64_t m, int64_t n, int64_t k) {
  std::vector<float> c(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < k; ++l) c[i * n + j] += a[i * k + l] * b[l * n + j];
  return c;
}

}  // namespace plugrad::test
