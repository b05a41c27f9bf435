// A program is one interpreter; a launch has finished when it returns.
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "plugin.h"
#include "plugrad/sdk/guard.h"
#include "plugrad/sdk/interpreter.h"

struct pgr_kernel {
  plugrad::sdk::Interpreter interpreter;
};

struct pgr_program {
  pgr_kernel kernel;
};

namespace plugrad::reference {
namespace {

pgr_status load(pgr_device*, const void* binary, uint64_t size, pgr_program** out,
                pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    std::optional<sdk::IrView> ir;
    try {
      ir = sdk::decode_ir(binary, size);
    } catch (const sdk::StatusError& e) {
      throw sdk::StatusError(PGR_STATUS_BAD_BINARY, e.what());
    }
    *out = new pgr_program{{sdk::Interpreter(std::move(*ir))}};
  });
}

pgr_status kernel(pgr_device*, pgr_program* program, const pgr_string* name, pgr_kernel** out,
                  pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(program != nullptr && out != nullptr, PGR_STATUS_INVALID_ARGUMENT,
                 "kernel: program or out is NULL");
    const std::string& own = program->kernel.interpreter.ir().name();
    sdk::require(sdk::to_view(name) == own, PGR_STATUS_NOT_FOUND,
                 "the program has no kernel \"" + std::string(sdk::to_view(name)) +
                     "\", it has \"" + own + "\"");
    *out = &program->kernel;
  });
}

pgr_status limits(pgr_device*, pgr_kernel* kernel, pgr_kernel_limits* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(kernel != nullptr, PGR_STATUS_INVALID_ARGUMENT, "kernel is NULL");
    const sdk::IrView& ir = kernel->interpreter.ir();
    const uint32_t* size = ir.header().local_size;
    pgr_kernel_limits own;
    PGR_INIT(own, KERNEL_LIMITS);
    own.max_local_total = size[0] * size[1] * size[2];
    for (const pgr_ir_array& array : ir.arrays()) {
      uint64_t& area = array.space == PGR_SPACE_LOCAL ? own.local_bytes : own.private_bytes;
      area += array.elem_count * sdk::dtype_size(array.dtype);
    }
    sdk::fill(out, own);
  });
}

sdk::InterpreterLaunch make_launch(const pgr_launch_desc& desc,
                                   const std::vector<sdk::InterpreterBuffer>& buffers) {
  sdk::InterpreterLaunch launch;
  launch.buffers = buffers;
  launch.scalars = {desc.scalars, desc.scalars ? desc.scalar_count : 0};
  for (int axis = 0; axis < 3; ++axis) {
    launch.group_count[axis] = desc.group_count[axis];
    launch.local_size[axis] = desc.local_size[axis];
  }
  return launch;
}

pgr_status launch(pgr_device*, pgr_queue*, pgr_kernel* kernel, const pgr_launch_desc* desc,
                  uint64_t* out_time_ns, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(kernel != nullptr, PGR_STATUS_INVALID_ARGUMENT, "kernel is NULL");
    const pgr_launch_desc own = sdk::read(desc);
    std::vector<sdk::InterpreterBuffer> buffers;
    for (uint32_t i = 0; i < own.buffer_count; ++i) {
      sdk::require(own.buffers && own.buffers[i], PGR_STATUS_INVALID_ARGUMENT,
                   "buffer " + std::to_string(i) + " is NULL");
      buffers.push_back({own.buffers[i]->data, own.buffers[i]->size});
    }
    const auto begin = std::chrono::steady_clock::now();
    kernel->interpreter.run(make_launch(own, buffers));
    const auto time = std::chrono::steady_clock::now() - begin;
    if (out_time_ns)
      *out_time_ns =
          static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
  });
}

void unload(pgr_device*, pgr_program* program) {
  delete program;
}

}  // namespace

const pgr_runner_api* runner_table() {
  static const pgr_runner_api table = [] {
    pgr_runner_api made;
    PGR_INIT(made, RUNNER_API);
    made.load = load;
    made.kernel = kernel;
    made.limits = limits;
    made.launch = launch;
    made.unload = unload;
    return made;
  }();
  return &table;
}

}  // namespace plugrad::reference
