// Commands are in order, as is the queue for which they are recorded: no sync points are needed.
#include "command_buffer.h"

namespace plugrad::opencl {
namespace {

using CopyFunction = cl_int(CL_API_CALL*)(cl_command_buffer_khr, cl_command_queue, cl_mem src,
                                          cl_mem dst, size_t src_offset, size_t dst_offset,
                                          size_t size, cl_uint, const cl_sync_point_khr*,
                                          cl_sync_point_khr*, cl_mutable_command_khr*);
using CopyWithProperties = cl_int(CL_API_CALL*)(cl_command_buffer_khr, cl_command_queue,
                                                const cl_properties*, cl_mem src, cl_mem dst,
                                                size_t src_offset, size_t dst_offset, size_t size,
                                                cl_uint, const cl_sync_point_khr*,
                                                cl_sync_point_khr*, cl_mutable_command_khr*);

template <typename Function>
bool find(cl_platform_id platform, const char* name, Function& out) {
  out = reinterpret_cast<Function>(api().clGetExtensionFunctionAddressForPlatform(platform, name));
  return out != nullptr;
}

// 0: the device lacks the extension or does not report its version.
cl_version extension_version(cl_device_id id) {
  size_t bytes = 0;
  if (api().clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS_WITH_VERSION, 0, nullptr, &bytes) !=
      CL_SUCCESS)
    return 0;
  std::vector<cl_name_version> extensions(bytes / sizeof(cl_name_version));
  if (api().clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS_WITH_VERSION, bytes, extensions.data(),
                            nullptr) != CL_SUCCESS)
    return 0;
  for (const cl_name_version& extension : extensions)
    if (std::string_view(extension.name) == CL_KHR_COMMAND_BUFFER_EXTENSION_NAME)
      return extension.version;
  return 0;
}

bool allows_simultaneous_use(cl_device_id id) {
  cl_device_command_buffer_capabilities_khr capabilities = 0;
  return api().clGetDeviceInfo(id, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, sizeof capabilities,
                               &capabilities, nullptr) == CL_SUCCESS &&
         (capabilities & CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR) != 0;
}

// A second kernel object for the same function.
cl_kernel clone(const pgr_kernel& kernel) {
  cl_program program = nullptr;
  require_success(
      api().clGetKernelInfo(kernel.handle, CL_KERNEL_PROGRAM, sizeof program, &program, nullptr),
      "CL_KERNEL_PROGRAM");
  const std::string name = std::string(kKernelPrefix) + kernel.shape.name;
  cl_int code = CL_SUCCESS;
  const cl_kernel own = api().clCreateKernel(program, name.c_str(), &code);
  require_success(code, "clCreateKernel " + kernel.shape.name);
  return own;
}

}  // namespace

std::optional<CommandBufferApi> find_command_buffers(const DeviceFacts& facts) {
  if (!prefers_command_buffers(facts.is_cpu) ||
      !facts.has_extension(CL_KHR_COMMAND_BUFFER_EXTENSION_NAME))
    return std::nullopt;
  const cl_version version = extension_version(facts.id);
  const cl_platform_id platform = facts.platform;
  CommandBufferApi found;
  if (version == 0 || !find(platform, "clCreateCommandBufferKHR", found.create) ||
      !find(platform, "clReleaseCommandBufferKHR", found.release) ||
      !find(platform, "clFinalizeCommandBufferKHR", found.finalize) ||
      !find(platform, "clEnqueueCommandBufferKHR", found.enqueue) ||
      !find(platform, "clCommandNDRangeKernelKHR", found.launch) ||
      !find(platform, "clCommandCopyBufferKHR", found.copy))
    return std::nullopt;
  found.copy_takes_properties = version >= CL_MAKE_VERSION(0, 9, 5);
  found.is_simultaneous = allows_simultaneous_use(facts.id);
  return found;
}

CommandBuffer::CommandBuffer(pgr_device& device, const CommandBufferApi& functions,
                             std::span<const Node> nodes)
    : device_(device), functions_(functions) {
  try {
    create();
    kernels_.reserve(nodes.size());
    for (const Node& node : nodes) std::visit([&](const auto& work) { record(work); }, node);
    require_success(functions_.finalize(handle_), "clFinalizeCommandBufferKHR");
  } catch (...) {
    release();
    throw;
  }
}

// Created for the device's default queue; all other queues have the same properties and may run it.
void CommandBuffer::create() {
  const cl_command_buffer_properties_khr properties[] = {CL_COMMAND_BUFFER_FLAGS_KHR,
                                                         CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0};
  cl_int code = CL_SUCCESS;
  handle_ = functions_.create(1, &device_.queue, functions_.is_simultaneous ? properties : nullptr,
                              &code);
  require_success(code, "clCreateCommandBufferKHR");
}

void CommandBuffer::record(const LaunchNode& launch) {
  if (launch.size.is_empty) return;
  kernels_.push_back(clone(*launch.kernel));
  set_arguments(
      device_, kernels_.back(), launch.kernel->shape,
      [&](uint32_t i) { return launch.buffers[i]->handle; }, launch.scalars.data());
  ranges_.insert(ranges_.end(), launch.buffers.begin(), launch.buffers.end());
  require_success(functions_.launch(handle_, nullptr, nullptr, kernels_.back(), launch.size.axes,
                                    nullptr, launch.size.global.data(), launch.size.local.data(), 0,
                                    nullptr, nullptr, nullptr),
                  "clCommandNDRangeKernelKHR");
}

void CommandBuffer::record(const CopyWork& copy) {
  if (copy.size == 0) return;
  ranges_.insert(ranges_.end(), {copy.src, copy.dst});
  const cl_mem src = copy.src->handle, dst = copy.dst->handle;
  const cl_int code = functions_.copy_takes_properties
                          ? reinterpret_cast<CopyWithProperties>(functions_.copy)(
                                handle_, nullptr, nullptr, src, dst, copy.src_offset,
                                copy.dst_offset, copy.size, 0, nullptr, nullptr, nullptr)
                          : reinterpret_cast<CopyFunction>(functions_.copy)(
                                handle_, nullptr, src, dst, copy.src_offset, copy.dst_offset,
                                copy.size, 0, nullptr, nullptr, nullptr);
  require_success(code, "clCommandCopyBufferKHR");
  copied_bytes_ += copy.size;
}

void CommandBuffer::enqueue(cl_command_queue queue) {
  if (!functions_.is_simultaneous) wait_for_replays();
  cl_event& last = last_[queue];
  cl_event done = nullptr;
  require_success(functions_.enqueue(1, &queue, handle_, 0, nullptr, &done),
                  "clEnqueueCommandBufferKHR");
  if (last) api().clReleaseEvent(last);
  last = done;
  device_.kernels_launched += kernels_.size();
  device_.bytes_copied += copied_bytes_;
  ++device_.command_buffers_replayed;
}

void CommandBuffer::wait_for_replays() {
  for (auto& [queue, last] : last_) {
    if (!last) continue;
    // Waiting for the queue reports the outcome.
    api().clWaitForEvents(1, &last);
    api().clReleaseEvent(last);
  }
  last_.clear();
}

void CommandBuffer::release() {
  wait_for_replays();
  if (handle_) functions_.release(handle_);
  for (cl_kernel kernel : kernels_) api().clReleaseKernel(kernel);
}

}  // namespace plugrad::opencl
