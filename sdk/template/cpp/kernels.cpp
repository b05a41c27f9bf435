// SPDX-License-Identifier: 0BSD
// Kernels: the binary is the kernel IR block itself, and the SDK's interpreter runs it.
// FILL: your compiler and your launch. With "renderer": "c" (or another dialect) in manifest.json
// the compiler's input is source text instead of kernel IR.
#include <chrono>
#include <optional>
#include <vector>

#include "plugin.h"
#include "plugrad/sdk/interpreter.h"

struct pgr_kernel {
  plugrad::sdk::Interpreter interpreter;
};

struct pgr_program {
  pgr_kernel kernel;
};

namespace acme_plugin {
namespace {

pgr_status compile(pgr_device*, const pgr_compile_desc* desc, pgr_blob* out_binary,
                   pgr_blob* out_log, pgr_error* error) {
  return sdk::guard(error, [&] {
    const pgr_compile_desc own = sdk::read(desc);
    sdk::require(out_binary != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out_binary is NULL");
    sdk::decode_ir(own.input, own.input_bytes);  // throws for an invalid kernel
    sdk::give_blob(out_binary, std::string(static_cast<const char*>(own.input), own.input_bytes));
    sdk::give_blob(out_log, "");
  });
}

// FILL: text that changes exactly when the compiler's output for the same input may change
pgr_status cache_identity(pgr_device*, pgr_blob* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    sdk::give_blob(out, "acme 0.1.0 kernel_ir " + std::to_string(PGR_IR_VERSION));
  });
}

pgr_status validate(pgr_device*, const void* binary, uint64_t size, uint32_t* out,
                    pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    const pgr_status status = sdk::guard(nullptr, [&] { sdk::decode_ir(binary, size); });
    *out = status == PGR_STATUS_OK ? PGR_BINARY_GOOD : PGR_BINARY_FOREIGN;
  });
}

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
    sdk::require(program && out, PGR_STATUS_INVALID_ARGUMENT, "kernel: program or out is NULL");
    const std::string& own = program->kernel.interpreter.ir().name();
    sdk::require(sdk::to_view(name) == own, PGR_STATUS_NOT_FOUND,
                 "no kernel " + std::string(sdk::to_view(name)) + "; there is " + own);
    *out = &program->kernel;
  });
}

void check_limits(const pgr_launch_desc& desc) {
  uint64_t items = 1;
  for (int axis = 0; axis < 3; ++axis) {
    items *= std::min(desc.local_size[axis], kMostItems + 1);
    sdk::require(items <= kMostItems && desc.group_count[axis] <= kMostGroups,
                 PGR_STATUS_LIMIT_EXCEEDED,
                 "axis " + std::to_string(axis) + ": " + std::to_string(desc.group_count[axis]) +
                     " groups of " + std::to_string(desc.local_size[axis]) + " are too many");
  }
}

std::vector<sdk::InterpreterBuffer> read_buffers(const pgr_launch_desc& desc) {
  std::vector<sdk::InterpreterBuffer> buffers;
  for (uint32_t i = 0; i < desc.buffer_count; ++i) {
    sdk::require(desc.buffers && desc.buffers[i], PGR_STATUS_INVALID_ARGUMENT,
                 "buffer " + std::to_string(i) + " is NULL");
    buffers.push_back({desc.buffers[i]->data, desc.buffers[i]->size});
  }
  return buffers;
}

pgr_status launch(pgr_device*, pgr_queue*, pgr_kernel* kernel, const pgr_launch_desc* desc,
                  uint64_t* out_time_ns, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(kernel != nullptr, PGR_STATUS_INVALID_ARGUMENT, "kernel is NULL");
    const pgr_launch_desc own = sdk::read(desc);
    check_limits(own);
    const std::vector<sdk::InterpreterBuffer> buffers = read_buffers(own);
    sdk::InterpreterLaunch run;
    run.buffers = buffers;
    run.scalars = {own.scalars, own.scalars ? own.scalar_count : 0};
    std::copy_n(own.group_count, 3, run.group_count.begin());
    std::copy_n(own.local_size, 3, run.local_size.begin());
    const auto begin = std::chrono::steady_clock::now();
    kernel->interpreter.run(run);
    const std::chrono::nanoseconds time = std::chrono::steady_clock::now() - begin;
    if (out_time_ns) *out_time_ns = own.timing ? static_cast<uint64_t>(time.count()) : 0;
  });
}

void unload(pgr_device*, pgr_program* program) {
  delete program;
}

}  // namespace

const pgr_compiler_api* compiler_table() {
  static const pgr_compiler_api table = [] {
    pgr_compiler_api made;
    PGR_INIT(made, COMPILER_API);
    made.compile = compile;
    made.cache_identity = cache_identity;
    made.validate = validate;
    made.disassemble = nullptr;  // FILL: disassembles a binary
    return made;
  }();
  return &table;
}

const pgr_runner_api* runner_table() {
  static const pgr_runner_api table = [] {
    pgr_runner_api made;
    PGR_INIT(made, RUNNER_API);
    made.load = load;
    made.kernel = kernel;
    made.limits = nullptr;  // FILL: registers and memory of a kernel
    made.launch = launch;
    made.unload = unload;
    return made;
  }();
  return &table;
}

}  // namespace acme_plugin
