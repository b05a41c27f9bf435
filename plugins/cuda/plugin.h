// Declarations shared by the plugin's sources: the objects behind the opaque handles, and the
// tables.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "clock.h"
#include "driver.h"
#include "plugrad/plugin_api/compiler.h"
#include "plugrad/plugin_api/graph.h"
#include "plugrad/plugin_api/queue.h"
#include "plugrad/sdk/guard.h"
#include "staging.h"
#include "toolchain.h"

namespace plugrad::cuda {

// Attributes of a GPU, queried without a context.
struct DeviceFacts {
  CUdevice handle = 0;
  std::string id, name, arch, driver;
  uint64_t memory_bytes = 0;
  unsigned compute_capability = 0;  // 90 is 9.0
  uint32_t multiprocessors = 0, warp_size = 0, registers_per_block = 0;
  uint32_t max_block = 0;
  std::array<uint32_t, 3> max_block_size{}, max_grid{};
  uint64_t local_bytes = 0, core_local_bytes = 0, l2_bytes = 0;
};

}  // namespace plugrad::cuda

// An in-order stream and the pinned memory of its copies.
struct pgr_queue {
  explicit pgr_queue(pgr_device& device);
  ~pgr_queue();
  pgr_device& device;
  plugrad::cuda::CUstream stream = nullptr;
  plugrad::cuda::Staging staging;
};

struct pgr_plugin {
  const pgr_host_api* host = nullptr;
  std::string driver_path;  // the option "driver"
  plugrad::cuda::ToolchainChoice toolchain;

  std::mutex mutex;  // guards all members below
  bool is_searched = false;
  std::string why_none;
  plugrad::cuda::Driver driver;
  std::vector<plugrad::cuda::DeviceFacts> devices;
};

struct pgr_device {
  pgr_plugin* plugin = nullptr;
  const plugrad::cuda::Driver* driver = nullptr;
  plugrad::cuda::DeviceFacts facts;
  plugrad::cuda::CUcontext context = nullptr;
  plugrad::cuda::ToolchainChoice toolchain;
  std::unique_ptr<plugrad::cuda::DeviceClock> clock;
  std::unique_ptr<pgr_queue> queue;       // the queue for a NULL handle
  std::atomic<uint32_t> other_queues{0};  // queues created by the host

  std::once_flag lost_once;
  std::string lost_by;  // written before is_lost is set
  std::atomic<bool> is_lost{false};
  std::atomic<uint64_t> used_bytes{0}, kernels_launched{0}, bytes_copied{0};

  pgr_device() = default;
  ~pgr_device();
};

namespace plugrad::cuda {

inline constexpr uint32_t kBufferAlign = 256;
inline constexpr uint32_t kMostParams = 500;  // 8 bytes each; every driver accepts 4096 bytes

// One allocation, shared by its buffers.
class Memory {
 public:
  Memory(pgr_device& device, uint64_t size_bytes, uint64_t align_bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  CUdeviceptr begin() const { return begin_; }

 private:
  pgr_device& device_;
  CUdeviceptr allocation_ = 0, begin_ = 0;
  uint64_t size_bytes_;
};

}  // namespace plugrad::cuda

// A whole allocation or a sub-range.
struct pgr_buffer {
  std::shared_ptr<plugrad::cuda::Memory> memory;
  plugrad::cuda::CUdeviceptr address = 0;
  uint64_t size = 0;
};

// A kernel of a loaded module. `params` has one letter per parameter: b buffer, s scalar.
struct pgr_kernel {
  std::string name, params;
  plugrad::cuda::CUfunction function = nullptr;
  uint32_t buffer_count = 0, scalar_count = 0;
  uint32_t max_items = 0;  // maximum work-items per group
};

namespace plugrad::cuda {

// Makes the device's context current on this thread, and restores the previous one at the end.
// Throws StatusError (DEVICE_LOST) if the device is lost.
class ContextScope {
 public:
  explicit ContextScope(pgr_device& device);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  const Driver& driver_;
};

// Throws StatusError with the result's name unless it is success; marks the device lost if its
// context is.
[[noreturn]] void fail(pgr_device& device, CUresult result, const std::string& what);
inline void check(pgr_device& device, CUresult result, const char* what) {
  if (result != kSuccess) fail(device, result, what);
}

// The process's plugin object: component tables have no device argument.
pgr_plugin& the_plugin();

// Opens the driver and enumerates the devices, once.
void find_devices(pgr_plugin& plugin);
std::vector<DeviceFacts> list_devices(const Driver& driver);

// Throws StatusError (INVALID_ARGUMENT) if the range is out of the buffer's bounds.
CUdeviceptr address_of(const pgr_buffer* buffer, uint64_t offset_bytes, uint64_t size_bytes,
                       const char* what);

// After a write without a queue: other queues, if any, have no event to wait for, so that the write
// must complete here.
void settle_own_queue(pgr_device& device);

inline pgr_queue& queue_of(pgr_device& device, pgr_queue* queue) {
  return queue ? *queue : *device.queue;
}

// A checked launch; its parameters point into `values`.
struct Launch {
  Launch(const pgr_device& device, const pgr_kernel* kernel, const pgr_launch_desc* desc);
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  const pgr_kernel* kernel;
  std::vector<uint64_t> values;  // addresses and scalars in the kernel's order
  std::vector<void*> params;
  unsigned grid[3];
  unsigned block[3];
  bool is_empty = false;
  KernelNodeParams node();
};

// Tables; each lives as long as the process.
const pgr_device_api* device_table();
const pgr_allocator_api* allocator_table();
const pgr_renderer_api* renderer_table();
const pgr_compiler_api* compiler_table();
const pgr_runner_api* runner_table();
const pgr_queue_api* queue_table();
const pgr_graph_api* graph_table();
const pgr_profile_api* profile_table();

}  // namespace plugrad::cuda
