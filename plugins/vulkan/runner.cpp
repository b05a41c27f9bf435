// A program is one compute pipeline. A launch pushes addresses and scalars, and dispatches.
#include <algorithm>
#include <cstring>

#include "plugin.h"

namespace plugrad::vulkan {
namespace {

void require_limits(const pgr_device& device, const KernelNote& note) {
  const pgr_device_caps& caps = device.caps;
  uint64_t items = 1;
  for (int axis = 0; axis < 3; ++axis) {
    const uint32_t size = note.local_size[axis], most = caps.max_local_size[axis];
    sdk::require(size <= most, PGR_STATUS_LIMIT_EXCEEDED,
                 "kernel " + note.name + ": groups of " + std::to_string(size) +
                     " work-items along axis " + std::to_string(axis) + "; " + device.facts.name +
                     " has at most " + std::to_string(most));
    items *= size;
  }
  sdk::require(items <= caps.max_local_total, PGR_STATUS_LIMIT_EXCEEDED,
               "kernel " + note.name + ": groups of " + std::to_string(items) + " work-items; " +
                   device.facts.name + " has at most " + std::to_string(caps.max_local_total));
  sdk::require(note.local_bytes <= caps.local_bytes, PGR_STATUS_LIMIT_EXCEEDED,
               "kernel " + note.name + ": " + std::to_string(note.local_bytes) +
                   " bytes of local memory; " + device.facts.name + " has " +
                   std::to_string(caps.local_bytes));
}

pgr_status load(pgr_device* device, const void* binary, uint64_t size, pgr_program** out,
                pgr_error* error) {
  return call(device, error, [&] {
    sdk::require(binary != nullptr && out != nullptr, PGR_STATUS_INVALID_ARGUMENT,
                 "load: binary or out is NULL");
    const LoadedModule module = require_module(device, binary, size);
    require_limits(*device, module.note);
    auto program = std::make_unique<pgr_program>();
    program->kernel.note = module.note;
    program->kernel.pipeline = make_pipeline(*device, module);
    *out = program.release();
  });
}

pgr_status kernel(pgr_device*, pgr_program* program, const pgr_string* name, pgr_kernel** out,
                  pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(program != nullptr && out != nullptr, PGR_STATUS_INVALID_ARGUMENT,
                 "kernel: program or out is NULL");
    const std::string& own = program->kernel.note.name;
    sdk::require(sdk::to_view(name) == own, PGR_STATUS_NOT_FOUND,
                 "the program has no kernel \"" + std::string(sdk::to_view(name)) +
                     "\", it has \"" + own + "\"");
    *out = &program->kernel;
  });
}

pgr_status limits(pgr_device*, pgr_kernel* kernel, pgr_kernel_limits* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(kernel != nullptr, PGR_STATUS_INVALID_ARGUMENT, "kernel is NULL");
    const KernelNote& note = kernel->note;
    pgr_kernel_limits own;
    PGR_INIT(own, KERNEL_LIMITS);
    own.max_local_total = note.local_size[0] * note.local_size[1] * note.local_size[2];
    own.local_bytes = note.local_bytes;
    sdk::fill(out, own);
  });
}

// Separate from the checks, so that a launch does not construct unused messages.
[[noreturn]] void refuse_counts(const pgr_kernel& kernel, const pgr_launch_desc& desc) {
  throw sdk::StatusError(
      PGR_STATUS_INVALID_ARGUMENT,
      "kernel " + kernel.note.name + " has " + std::to_string(kernel.note.buffers) +
          " buffers and " + std::to_string(kernel.note.scalars) + " scalars; given are " +
          std::to_string(desc.buffer_count) + " and " + std::to_string(desc.scalar_count));
}

[[noreturn]] void refuse_buffer(const pgr_kernel& kernel, uint32_t index) {
  throw sdk::StatusError(PGR_STATUS_INVALID_ARGUMENT, "kernel " + kernel.note.name + ": buffer " +
                                                          std::to_string(index) + " is NULL");
}

[[noreturn]] void refuse_groups(const pgr_kernel& kernel, int axis, uint64_t count, uint64_t most) {
  throw sdk::StatusError(PGR_STATUS_LIMIT_EXCEEDED,
                         "kernel " + kernel.note.name + ": " + std::to_string(count) +
                             " groups along axis " + std::to_string(axis) + "; the device takes " +
                             std::to_string(most));
}

[[noreturn]] void refuse_local_size(const pgr_device& device, const pgr_kernel& kernel, int axis,
                                    uint32_t size) {
  const bool is_too_large = size > device.caps.max_local_size[axis];
  throw sdk::StatusError(is_too_large ? PGR_STATUS_LIMIT_EXCEEDED : PGR_STATUS_INVALID_ARGUMENT,
                         "kernel " + kernel.note.name + ": local size " + std::to_string(size) +
                             " along axis " + std::to_string(axis) + "; it was compiled for " +
                             std::to_string(kernel.note.local_size[axis]));
}

// Slots in push constants, or in memory whose address is pushed.
struct Pushed {
  uint64_t slots[kSlots] = {};
};

Pushed push_slots(Stream& stream, const std::vector<uint64_t>& slots) {
  Pushed pushed;
  const uint64_t bytes = slots.size() * sizeof(uint64_t);
  if (slots.size() <= kSlots) {
    if (bytes > 0) std::memcpy(pushed.slots, slots.data(), bytes);
    return pushed;
  }
  const MemoryRange range = stream.arguments((bytes + 63) / 64 * 64);
  std::memcpy(range.mapped(), slots.data(), bytes);
  pushed.slots[0] = range.address();
  return pushed;
}

uint64_t launch_timed(pgr_device& device, Stream& stream, const PreparedLaunch& launch,
                      const Pushed& pushed) {
  const uint32_t begin = take_query(device), end = take_query(device);
  const DeviceApi& api = device.api;
  const uint64_t number = stream.record([&](VkCommandBuffer commands) {
    write_timestamp(device, commands, begin);
    api.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, launch.kernel->pipeline);
    api.vkCmdPushConstants(commands, device.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                           sizeof pushed.slots, pushed.slots);
    api.vkCmdDispatch(commands, launch.groups[0], launch.groups[1], launch.groups[2]);
    barrier(api, commands);
    write_timestamp(device, commands, end);
  });
  stream.finish();
  const uint64_t ns =
      to_ns(device, read_timestamp(device, end)) - to_ns(device, read_timestamp(device, begin));
  give_back_query(device, begin, stream, number);
  give_back_query(device, end, stream, number);
  return ns;
}

pgr_status launch(pgr_device* device, pgr_queue* queue, pgr_kernel* kernel,
                  const pgr_launch_desc* desc, uint64_t* out_time_ns, pgr_error* error) {
  return call(device, error, [&] {
    thread_local PreparedLaunch launch;
    prepare_launch(*device, kernel, desc, launch);
    if (out_time_ns) *out_time_ns = 0;
    if (launch.is_empty()) return;
    Stream& stream = stream_of(*device, queue);
    const Pushed pushed = push_slots(stream, launch.slots);
    ++device->kernels_launched;
    if (out_time_ns && sdk::read(desc).timing && device->facts.timestamp_bits > 0) {
      *out_time_ns = launch_timed(*device, stream, launch, pushed);
      report_cut_loops(*device);
      return;
    }
    stream.dispatch(
        {kernel->pipeline, pushed.slots, {launch.groups[0], launch.groups[1], launch.groups[2]}});
  });
}

void unload(pgr_device* device, pgr_program* program) {
  if (!program) return;
  sdk::guard(nullptr, [&] { finish_all(*device); });
  device->api.vkDestroyPipeline(device->api.handle, program->kernel.pipeline, nullptr);
  // llvmpipe frees a pipeline only at its next submission.
  if (device->facts.driver_id == VK_DRIVER_ID_MESA_LLVMPIPE)
    sdk::guard(nullptr, [&] {
      device->streams.front()->submit({});
      device->streams.front()->finish();
    });
  delete program;
}

}  // namespace

VkPipeline make_pipeline(pgr_device& device, const LoadedModule& module) {
  const DeviceApi& api = device.api;
  VkShaderModuleCreateInfo shader{};
  shader.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  shader.codeSize = module.words.size() * sizeof(uint32_t);
  shader.pCode = module.words.data();
  VkShaderModule made = VK_NULL_HANDLE;
  check_device(device, api.vkCreateShaderModule(api.handle, &shader, nullptr, &made),
               "vkCreateShaderModule");
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  // Mesa's disk cache would otherwise give out llvmpipe's machine code of another vector width.
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size{};
  size.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
  size.requiredSubgroupSize = device.facts.subgroup_size;
  if (device.facts.max_subgroups > 0) info.stage.pNext = &size;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = made;
  info.stage.pName = "main";
  info.layout = device.layout;
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result =
      api.vkCreateComputePipelines(api.handle, device.pipelines, 1, &info, nullptr, &pipeline);
  api.vkDestroyShaderModule(api.handle, made, nullptr);
  if (result == VK_SUCCESS) return pipeline;
  check_device(device, result == VK_ERROR_DEVICE_LOST ? result : VK_SUCCESS, "a pipeline");
  throw sdk::StatusError(PGR_STATUS_BAD_BINARY,
                         "kernel " + module.note.name + " on " + device.facts.name +
                             ": vkCreateComputePipelines: " + result_name(result),
                         result);
}

void prepare_launch(const pgr_device& device, const pgr_kernel* kernel, const pgr_launch_desc* desc,
                    PreparedLaunch& out) {
  sdk::require(kernel != nullptr, PGR_STATUS_INVALID_ARGUMENT, "kernel is NULL");
  const pgr_launch_desc own = sdk::read(desc);
  out.kernel = kernel;
  if (own.buffer_count != kernel->note.buffers || own.scalar_count != kernel->note.scalars)
    refuse_counts(*kernel, own);
  sdk::require((own.buffers || own.buffer_count == 0) && (own.scalars || own.scalar_count == 0),
               PGR_STATUS_INVALID_ARGUMENT, "launch: buffers or scalars is NULL");
  for (int axis = 0; axis < 3; ++axis) {
    const uint64_t count = own.group_count[axis], most = device.caps.max_groups[axis];
    if (count > most) refuse_groups(*kernel, axis, count, most);
    if (own.local_size[axis] != kernel->note.local_size[axis])
      refuse_local_size(device, *kernel, axis, own.local_size[axis]);
    out.groups[axis] = static_cast<uint32_t>(count);
  }
  out.slots.resize(own.buffer_count + own.scalar_count + kernel->note.checks_loops);
  for (uint32_t i = 0; i < own.buffer_count; ++i) {
    if (!own.buffers[i]) refuse_buffer(*kernel, i);
    out.slots[i] = own.buffers[i]->address();
  }
  std::copy_n(own.scalars, own.scalar_count, out.slots.begin() + own.buffer_count);
  if (kernel->note.checks_loops) out.slots.back() = device.cut_loops.address();
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

}  // namespace plugrad::vulkan
