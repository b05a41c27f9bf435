#include "conformance/driver/shrink.h"

#include <algorithm>

#include "conformance/driver/smaller.h"
#include "plugrad/sdk/interpreter.h"

namespace plugrad::conformance {
namespace {

constexpr uint64_t kMostIterations = 1 << 20;

bool interpreter_runs(const std::vector<std::byte>& block) {
  try {
    const sdk::Interpreter interpreter(sdk::decode_ir(block));
    const sdk::IrView& ir = interpreter.ir();
    std::vector<std::vector<std::byte>> memory;
    std::vector<sdk::InterpreterBuffer> buffers;
    std::vector<uint64_t> scalars;
    for (const pgr_ir_param& param : ir.params()) {
      if (param.kind == PGR_PARAM_SCALAR) {
        scalars.push_back(static_cast<uint64_t>(param.max));
        continue;
      }
      memory.emplace_back(param.elem_count * sdk::dtype_size(param.dtype));
      buffers.push_back({memory.back().data(), memory.back().size()});
    }
    sdk::InterpreterLaunch launch;
    launch.buffers = buffers;
    launch.scalars = scalars;
    std::copy_n(ir.header().group_count, 3, launch.group_count.begin());
    std::copy_n(ir.header().local_size, 3, launch.local_size.begin());
    launch.iteration_limit = kMostIterations;
    interpreter.run(launch);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

std::vector<std::byte> shrink_kernel(
    std::vector<std::byte> kernel_ir,
    const std::function<bool(std::span<const std::byte> kernel_ir)>& fails,
    std::chrono::steady_clock::time_point deadline) {
  const auto in_time = [&] { return std::chrono::steady_clock::now() < deadline; };
  for (bool smaller = true; smaller && in_time();) {
    smaller = false;
    const EditableIr current(sdk::decode_ir(kernel_ir));
    for (const EditableIr& step : smaller_kernels(current)) {
      std::vector<std::byte> block = step.encode();
      if (!in_time()) break;
      if (block == kernel_ir || !interpreter_runs(block) || !fails(block)) continue;
      kernel_ir = std::move(block);
      smaller = true;
      break;
    }
  }
  return kernel_ir;
}

}  // namespace plugrad::conformance
