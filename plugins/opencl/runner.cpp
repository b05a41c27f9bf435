// Loads binaries and queues kernels.
#include "runner.h"

#include <map>

struct pgr_program {
  plugrad::opencl::ProgramOwner program;
  std::map<std::string, pgr_kernel, std::less<>> kernels;

  ~pgr_program() {
    for (auto& [name, kernel] : kernels)
      if (kernel.handle) plugrad::opencl::api().clReleaseKernel(kernel.handle);
  }
};

namespace plugrad::opencl {
namespace {

template <typename Number>
Number kernel_number(pgr_device& device, cl_kernel kernel, cl_kernel_work_group_info what) {
  Number value{};
  device.check(
      api().clGetKernelWorkGroupInfo(kernel, device.facts.id, what, sizeof value, &value, nullptr),
      "clGetKernelWorkGroupInfo");
  return value;
}

void open_kernel(pgr_device& device, cl_program program, const KernelShape& shape,
                 pgr_kernel& kernel) {
  cl_int code = CL_SUCCESS;
  const std::string name = std::string(kKernelPrefix) + shape.name;
  kernel.handle = api().clCreateKernel(program, name.c_str(), &code);
  device.check(code, "clCreateKernel " + shape.name);
  kernel.shape = shape;
  for (uint8_t bytes : shape.param_bytes) ++(bytes ? kernel.scalar_count : kernel.buffer_count);
  const cl_kernel handle = kernel.handle;
  kernel.compiled_size =
      kernel_number<std::array<size_t, 3>>(device, handle, CL_KERNEL_COMPILE_WORK_GROUP_SIZE);
  kernel.max_local_total = kernel_number<size_t>(device, handle, CL_KERNEL_WORK_GROUP_SIZE);
  kernel.local_bytes = kernel_number<cl_ulong>(device, handle, CL_KERNEL_LOCAL_MEM_SIZE);
  kernel.private_bytes = kernel_number<cl_ulong>(device, handle, CL_KERNEL_PRIVATE_MEM_SIZE);
}

void open_program(pgr_device& device, const Binary& binary, ProgramOwner& out) {
  if (!binary.build_options.empty()) {
    std::string log;
    return take_program(device, binary.code, binary.build_options, out, log);
  }
  const auto* code = reinterpret_cast<const unsigned char*>(binary.code.data());
  const size_t size = binary.code.size();
  cl_int status = CL_SUCCESS, result = CL_SUCCESS;
  out.handle = api().clCreateProgramWithBinary(device.context, 1, &device.facts.id, &size, &code,
                                               &status, &result);
  device.check(result, "clCreateProgramWithBinary");
  device.check(status, "clCreateProgramWithBinary");
  build(device, out.handle, "", nullptr);
}

pgr_status load(pgr_device* device, const void* bytes, uint64_t size, pgr_program** out,
                pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(bytes != nullptr && out != nullptr, PGR_STATUS_INVALID_ARGUMENT,
                 "load: binary or out is NULL");
    const Binary binary = require_binary({static_cast<const char*>(bytes), size}, device->facts);
    auto program = std::make_unique<pgr_program>();
    open_program(*device, binary, program->program);
    for (const KernelShape& shape : binary.kernels)
      open_kernel(*device, program->program.handle, shape, program->kernels[shape.name]);
    *out = program.release();
  });
}

pgr_status kernel(pgr_device*, pgr_program* program, const pgr_string* name, pgr_kernel** out,
                  pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(program != nullptr && out != nullptr, PGR_STATUS_INVALID_ARGUMENT,
                 "kernel: program or out is NULL");
    const auto found = program->kernels.find(sdk::to_view(name));
    sdk::require(found != program->kernels.end(), PGR_STATUS_NOT_FOUND,
                 "the program has no kernel \"" + std::string(sdk::to_view(name)) + "\"");
    *out = &found->second;
  });
}

pgr_status limits(pgr_device*, pgr_kernel* kernel, pgr_kernel_limits* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(kernel != nullptr, PGR_STATUS_INVALID_ARGUMENT, "limits: kernel is NULL");
    pgr_kernel_limits own;
    PGR_INIT(own, KERNEL_LIMITS);
    own.max_local_total = static_cast<uint32_t>(kernel->max_local_total);
    own.local_bytes = kernel->local_bytes;
    own.private_bytes = kernel->private_bytes;
    sdk::fill(out, own);
  });
}

[[noreturn]] void refuse(pgr_status status, const pgr_kernel& kernel, const std::string& why) {
  throw sdk::StatusError(status, "kernel " + kernel.shape.name + ": " + why);
}

void check_group(const pgr_device& device, const pgr_kernel& kernel, const pgr_launch_desc& desc) {
  uint64_t items = 1;
  for (int axis = 0; axis < 3; ++axis) {
    const uint64_t local = desc.local_size[axis], most = device.facts.max_local_size[axis];
    if (local == 0) refuse(PGR_STATUS_INVALID_ARGUMENT, kernel, "a local size of 0");
    if (local > most)
      refuse(PGR_STATUS_LIMIT_EXCEEDED, kernel,
             std::to_string(local) + " work-items along axis " + std::to_string(axis) + "; " +
                 device.facts.name + " takes " + std::to_string(most));
    if (kernel.compiled_size[0] && local != kernel.compiled_size[axis])
      refuse(PGR_STATUS_LIMIT_EXCEEDED, kernel,
             "a group of " + std::to_string(local) + " work-items along axis " +
                 std::to_string(axis) + "; it was compiled for " +
                 std::to_string(kernel.compiled_size[axis]));
    items *= local;
  }
  if (items > kernel.max_local_total)
    refuse(PGR_STATUS_LIMIT_EXCEEDED, kernel,
           "groups of " + std::to_string(items) + " work-items; it takes " +
               std::to_string(kernel.max_local_total) + " on " + device.facts.name);
  if (kernel.local_bytes > device.facts.local_bytes)
    refuse(PGR_STATUS_LIMIT_EXCEEDED, kernel,
           std::to_string(kernel.local_bytes) + " bytes of local memory; " + device.facts.name +
               " has " + std::to_string(device.facts.local_bytes));
}

uint64_t timed(pgr_device& device, cl_event event) {
  const cl_int code = api().clWaitForEvents(1, &event);
  device.check(code, "clWaitForEvents");
  return event_ns(device, event, CL_PROFILING_COMMAND_END) -
         event_ns(device, event, CL_PROFILING_COMMAND_START);
}

pgr_status launch(pgr_device* device, pgr_queue* queue, pgr_kernel* kernel,
                  const pgr_launch_desc* desc, uint64_t* out_time_ns, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(kernel != nullptr, PGR_STATUS_INVALID_ARGUMENT, "launch: kernel is NULL");
    const pgr_launch_desc own = sdk::read(desc);
    const LaunchSize size = check_launch(*device, *kernel, own);
    const bool is_timed = own.timing && out_time_ns;
    if (out_time_ns) *out_time_ns = 0;
    if (size.is_empty) return;
    cl_event event = nullptr;
    {
      const std::lock_guard lock(kernel->arguments_mutex);
      set_arguments(
          *device, kernel->handle, kernel->shape,
          [&](uint32_t i) { return own.buffers[i]->range->handle; }, own.scalars);
      device->check(
          api().clEnqueueNDRangeKernel(queue_of(*device, queue), kernel->handle, size.axes, nullptr,
                                       size.global.data(), size.local.data(), 0, nullptr,
                                       is_timed ? &event : nullptr),
          "clEnqueueNDRangeKernel");
    }
    ++device->kernels_launched;
    if (!is_timed) return;
    const std::unique_ptr<_cl_event, cl_int (*)(cl_event)> owner(event, api().clReleaseEvent);
    *out_time_ns = timed(*device, event);
  });
}

void unload(pgr_device* device, pgr_program* program) {
  if (!program) return;
  sdk::guard(nullptr, [&] { finish_all(*device); });
  delete program;
}

}  // namespace

LaunchSize check_launch(const pgr_device& device, const pgr_kernel& kernel,
                        const pgr_launch_desc& desc) {
  if (desc.buffer_count != kernel.buffer_count || desc.scalar_count != kernel.scalar_count)
    refuse(PGR_STATUS_INVALID_ARGUMENT, kernel,
           std::to_string(desc.buffer_count) + " buffers and " + std::to_string(desc.scalar_count) +
               " scalars; it takes " + std::to_string(kernel.buffer_count) + " and " +
               std::to_string(kernel.scalar_count));
  if ((desc.buffer_count && !desc.buffers) || (desc.scalar_count && !desc.scalars))
    refuse(PGR_STATUS_INVALID_ARGUMENT, kernel, "buffers or scalars is NULL");
  for (uint32_t i = 0; i < desc.buffer_count; ++i)
    if (!desc.buffers[i])
      refuse(PGR_STATUS_INVALID_ARGUMENT, kernel, "buffer " + std::to_string(i) + " is NULL");
  check_group(device, kernel, desc);
  LaunchSize size;
  for (int axis = 0; axis < 3; ++axis) {
    const uint64_t count = desc.group_count[axis];
    if (count > most_groups(axis))
      refuse(PGR_STATUS_LIMIT_EXCEEDED, kernel,
             std::to_string(count) + " groups along axis " + std::to_string(axis) + "; " +
                 device.facts.name + " takes " + std::to_string(most_groups(axis)));
    size.is_empty = size.is_empty || count == 0;
    size.local[axis] = desc.local_size[axis];
    size.global[axis] = count * desc.local_size[axis];
    if (size.global[axis] > 1) size.axes = static_cast<cl_uint>(axis) + 1;
  }
  return size;
}

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

}  // namespace plugrad::opencl
