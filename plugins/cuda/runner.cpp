// Modules and launches. Each launch is checked against the limits of device and kernel before it is
// submitted.
#include <algorithm>
#include <cstring>
#include <map>

#include "binary.h"
#include "plugin.h"

struct pgr_program {
  explicit pgr_program(pgr_device& on) : device(on) {}
  ~pgr_program();
  pgr_device& device;
  plugrad::cuda::CUmodule module = nullptr;
  std::map<std::string, pgr_kernel, std::less<>> kernels;
};

// Waits for launches of its kernels.
pgr_program::~pgr_program() {
  if (!module) return;
  plugrad::sdk::guard(nullptr, [&] {
    const plugrad::cuda::ContextScope scope(device);
    device.driver->synchronize();
    device.driver->module_unload(module);
  });
}

namespace plugrad::cuda {
namespace {

// The driver compiles PTX at this point; machine code needs no compilation.
CUmodule load_module(pgr_device& device, const Binary& binary) {
  char log[2048] = {};
  int keys[] = {kJitErrorLogBuffer, kJitErrorLogBytes};
  void* values[] = {log, reinterpret_cast<void*>(uintptr_t{sizeof log - 1})};
  CUmodule module = nullptr;
  const CUresult result =
      device.driver->module_load(&module, binary.code.c_str(), std::size(keys), keys, values);
  if (result != kSuccess) {
    const std::string said(log, ::strnlen(log, sizeof log));
    fail(device, result,
         "loading a module for " + device.facts.arch + (said.empty() ? "" : ": " + said));
  }
  return module;
}

uint32_t function_attribute(pgr_device& device, int which, CUfunction function) {
  int value = 0;
  check(device, device.driver->function_attribute(&value, which, function), "cuFuncGetAttribute");
  return static_cast<uint32_t>(std::max(value, 0));
}

pgr_kernel find_kernel(pgr_device& device, CUmodule module, const KernelEntry& entry) {
  pgr_kernel kernel;
  kernel.name = entry.name;
  kernel.params = entry.params;
  const CUresult result =
      device.driver->module_function(&kernel.function, module, entry.name.c_str());
  if (result != kSuccess) fail(device, result, "kernel " + entry.name + " of a module");
  const auto is_buffer = [](char letter) { return letter == 'b'; };
  kernel.buffer_count =
      static_cast<uint32_t>(std::count_if(kernel.params.begin(), kernel.params.end(), is_buffer));
  kernel.scalar_count = static_cast<uint32_t>(kernel.params.size()) - kernel.buffer_count;
  kernel.max_items = function_attribute(device, kFunctionMaxThreads, kernel.function);
  return kernel;
}

pgr_status load(pgr_device* device, const void* binary, uint64_t size, pgr_program** out,
                pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(binary != nullptr && out != nullptr, PGR_STATUS_INVALID_ARGUMENT,
                 "load: binary or out is NULL");
    const Binary opened =
        require_binary({static_cast<const char*>(binary), size}, device->facts.arch);
    const ContextScope scope(*device);
    auto program = std::make_unique<pgr_program>(*device);
    program->module = load_module(*device, opened);
    for (const KernelEntry& entry : opened.kernels)
      program->kernels[entry.name] = find_kernel(*device, program->module, entry);
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

pgr_status limits(pgr_device* device, pgr_kernel* kernel, pgr_kernel_limits* out,
                  pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(kernel != nullptr, PGR_STATUS_INVALID_ARGUMENT, "kernel is NULL");
    const ContextScope scope(*device);
    pgr_kernel_limits own;
    PGR_INIT(own, KERNEL_LIMITS);
    own.max_local_total = std::min(kernel->max_items, device->facts.max_block);
    own.registers = function_attribute(*device, kFunctionRegisters, kernel->function);
    own.local_bytes = function_attribute(*device, kFunctionSharedBytes, kernel->function);
    own.private_bytes = function_attribute(*device, kFunctionLocalBytes, kernel->function);
    sdk::fill(out, own);
  });
}

[[noreturn]] void refuse_limit(const pgr_kernel& kernel, const std::string& what, uint64_t value,
                               uint64_t most) {
  throw sdk::StatusError(PGR_STATUS_LIMIT_EXCEEDED, "kernel " + kernel.name + ": " + what + " is " +
                                                        std::to_string(value) + "; at most " +
                                                        std::to_string(most));
}

void check_sizes(const DeviceFacts& facts, const pgr_kernel& kernel, const pgr_launch_desc& desc) {
  constexpr const char* kAxes[] = {"0", "1", "2"};
  uint64_t items = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    const uint64_t size = desc.local_size[axis], count = desc.group_count[axis];
    if (size > facts.max_block_size[axis])
      refuse_limit(kernel, std::string("local_size along axis ") + kAxes[axis], size,
                   facts.max_block_size[axis]);
    if (count > facts.max_grid[axis])
      refuse_limit(kernel, std::string("group_count along axis ") + kAxes[axis], count,
                   facts.max_grid[axis]);
    items *= size;
  }
  if (items > kernel.max_items) refuse_limit(kernel, "the group's size", items, kernel.max_items);
}

void check_counts(const pgr_kernel& kernel, const pgr_launch_desc& desc) {
  if (desc.buffer_count == kernel.buffer_count && desc.scalar_count == kernel.scalar_count) return;
  throw sdk::StatusError(PGR_STATUS_INVALID_ARGUMENT,
                         "kernel " + kernel.name + " takes " + std::to_string(kernel.buffer_count) +
                             " buffers and " + std::to_string(kernel.scalar_count) +
                             " scalars; given are " + std::to_string(desc.buffer_count) + " and " +
                             std::to_string(desc.scalar_count));
}

void start(pgr_device& device, pgr_queue& queue, Launch& launch) {
  const KernelNodeParams node = launch.node();
  const CUresult result =
      device.driver->launch(node.function, node.grid[0], node.grid[1], node.grid[2], node.block[0],
                            node.block[1], node.block[2], 0, queue.stream, node.params, nullptr);
  if (result != kSuccess) fail(device, result, "launch of kernel " + launch.kernel->name);
  device.kernels_launched.fetch_add(1, std::memory_order_relaxed);
}

uint64_t start_timed(pgr_device& device, pgr_queue& queue, Launch& launch) {
  const Event begin(device), end(device);
  check(device, device.driver->event_record(begin.handle(), queue.stream), "cuEventRecord");
  start(device, queue, launch);
  check(device, device.driver->event_record(end.handle(), queue.stream), "cuEventRecord");
  check(device, device.driver->event_synchronize(end.handle()), "cuEventSynchronize");
  float ms = 0;
  check(device, device.driver->event_elapsed(&ms, begin.handle(), end.handle()),
        "cuEventElapsedTime");
  return static_cast<uint64_t>(double{ms} * 1e6);
}

pgr_status launch(pgr_device* device, pgr_queue* queue, pgr_kernel* kernel,
                  const pgr_launch_desc* desc, uint64_t* out_time_ns, pgr_error* error) {
  return sdk::guard(error, [&] {
    const pgr_launch_desc own = sdk::read(desc);
    Launch launch(*device, kernel, &own);
    const bool is_timed = own.timing && out_time_ns;
    uint64_t time_ns = 0;
    if (!launch.is_empty) {
      const ContextScope scope(*device);
      pgr_queue& on = queue_of(*device, queue);
      if (is_timed)
        time_ns = start_timed(*device, on, launch);
      else
        start(*device, on, launch);
    }
    if (out_time_ns) *out_time_ns = time_ns;
  });
}

void unload(pgr_device*, pgr_program* program) {
  delete program;
}

}  // namespace

Launch::Launch(const pgr_device& device, const pgr_kernel* of, const pgr_launch_desc* given)
    : kernel(of) {
  sdk::require(of != nullptr, PGR_STATUS_INVALID_ARGUMENT, "launch: kernel is NULL");
  const pgr_launch_desc desc = sdk::read(given);
  check_counts(*of, desc);
  check_sizes(device.facts, *of, desc);
  uint32_t buffers = 0, scalars = 0;
  values.reserve(of->params.size());
  for (const char letter : of->params) {
    if (letter == 's') {
      values.push_back(desc.scalars[scalars++]);
      continue;
    }
    const pgr_buffer* buffer = desc.buffers[buffers++];
    if (!buffer)
      throw sdk::StatusError(PGR_STATUS_INVALID_ARGUMENT,
                             "launch: buffer " + std::to_string(buffers - 1) + " is NULL");
    values.push_back(buffer->address);
  }
  for (uint64_t& value : values) params.push_back(&value);
  for (size_t axis = 0; axis < 3; ++axis) {
    grid[axis] = static_cast<unsigned>(desc.group_count[axis]);
    block[axis] = desc.local_size[axis];
    is_empty = is_empty || grid[axis] == 0 || block[axis] == 0;
  }
}

KernelNodeParams Launch::node() {
  return {kernel->function,
          {grid[0], grid[1], grid[2]},
          {block[0], block[1], block[2]},
          0,
          params.data(),
          nullptr};
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

}  // namespace plugrad::cuda
