// A program is one interpreter. Arguments of a launch are checked at the call; errors inside the
// kernel are reported when it has run.
#include <optional>

#include "work_queue.h"

namespace plugrad::reference {
namespace {

pgr_status load(pgr_device* device, const void* binary, uint64_t size, pgr_program** out,
                pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    std::optional<sdk::IrView> ir;
    try {
      ir = sdk::decode_ir(binary, size);
    } catch (const sdk::StatusError& e) {
      throw sdk::StatusError(PGR_STATUS_BAD_BINARY, e.what());
    }
    *out = new pgr_program{
        {std::make_shared<const sdk::Interpreter>(std::move(*ir), device->tensor_cores)}};
  });
}

pgr_status kernel(pgr_device*, pgr_program* program, const pgr_string* name, pgr_kernel** out,
                  pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(program != nullptr && out != nullptr, PGR_STATUS_INVALID_ARGUMENT,
                 "kernel: program or out is NULL");
    const std::string& own = program->kernel.interpreter->ir().name();
    sdk::require(sdk::to_view(name) == own, PGR_STATUS_NOT_FOUND,
                 "the program has no kernel \"" + std::string(sdk::to_view(name)) +
                     "\", it has \"" + own + "\"");
    *out = &program->kernel;
  });
}

pgr_status limits(pgr_device*, pgr_kernel* kernel, pgr_kernel_limits* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(kernel != nullptr, PGR_STATUS_INVALID_ARGUMENT, "kernel is NULL");
    const sdk::IrView& ir = kernel->interpreter->ir();
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

pgr_status launch(pgr_device* device, pgr_queue* queue, pgr_kernel* kernel,
                  const pgr_launch_desc* desc, uint64_t* out_time_ns, pgr_error* error) {
  return sdk::guard(error, [&] {
    LaunchWork launch = read_launch(*device, kernel, desc);
    uint64_t time_ns = 0;
    const bool is_timed = out_time_ns && sdk::read(desc).timing;
    submit(*device, queue, make_work(*device, std::move(launch), is_timed ? &time_ns : nullptr));
    WorkQueue* const worker = work_queue_of(*device, queue);
    if (is_timed && worker) worker->finish();
    if (out_time_ns) *out_time_ns = time_ns;
  });
}

void unload(pgr_device* device, pgr_program* program) {
  if (program) wait_for(*device, program->kernel.interpreter.get());
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
