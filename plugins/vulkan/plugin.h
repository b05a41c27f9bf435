// Declarations shared by the plugin's sources: the objects behind the opaque handles, and the
// tables.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "binary.h"
#include "driver/instance.h"
#include "driver/suspects.h"
#include "memory.h"
#include "plugrad/plugin_api/compiler.h"
#include "plugrad/plugin_api/graph.h"
#include "plugrad/plugin_api/queue.h"
#include "plugrad/sdk/guard.h"
#include "stream.h"

struct pgr_plugin {
  const pgr_host_api* host = nullptr;
  bool validates = false;  // default for devices without the option
  std::mutex mutex;
  std::unique_ptr<plugrad::vulkan::Instance> instance;  // created when devices are counted
  // With the validation layer, created when a device requests it; and the layer's first message.
  std::unique_ptr<plugrad::vulkan::Instance> validating;
  std::mutex messages_mutex;
  std::string validation_message;
  std::atomic<bool> has_message{false};
  std::mutex broken_mutex;
  std::map<std::string, std::vector<plugrad::vulkan::BrokenClaim>>
      broken_claims;  // per device UUID
};

struct pgr_device {
  pgr_plugin* plugin = nullptr;
  bool validates = false;
  const plugrad::vulkan::Instance* instance = nullptr;
  plugrad::vulkan::Facts facts;
  pgr_device_caps caps{};
  std::string vendor;
  plugrad::vulkan::DeviceApi api;
  std::unique_ptr<plugrad::vulkan::Memory> memory;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkPipelineCache pipelines = VK_NULL_HANDLE;
  std::vector<std::unique_ptr<plugrad::vulkan::HardwareQueue>> hardware_queues;

  std::mutex mutex;                                               // guards the members below
  std::vector<std::unique_ptr<plugrad::vulkan::Stream>> streams;  // the first is the NULL queue
  std::vector<plugrad::vulkan::Stream*> idle_streams;             // of destroyed queues
  // Freed memory, and the work that may still use it.
  struct Retired {
    plugrad::vulkan::MemoryRange range;
    std::vector<std::pair<plugrad::vulkan::Stream*, uint64_t>> work;
  };
  std::vector<Retired> retired;
  std::vector<VkQueryPool> query_pools;
  std::vector<uint32_t> free_queries;  // pool * kQueries + index
  struct RetiredQuery {
    uint32_t query;
    plugrad::vulkan::Stream* stream;
    uint64_t work;
  };
  std::vector<RetiredQuery> retired_queries;

  std::atomic<bool> is_lost{false};
  plugrad::vulkan::MemoryRange cut_loops;  // a word that kernels set when a loop was aborted
  std::atomic<uint64_t> kernels_launched{0}, bytes_copied{0};

  pgr_device() = default;
  ~pgr_device();
};

struct pgr_buffer {
  // The memory, shared by sub-buffers; nullptr for size 0.
  std::shared_ptr<const plugrad::vulkan::MemoryRange> memory;
  uint64_t offset = 0, size = 0;
  std::shared_ptr<plugrad::vulkan::MemoryRange> shadow;  // while device memory is mapped
  VkDeviceAddress address() const { return memory ? memory->address() + offset : 0; }
  char* mapped() const { return memory && memory->mapped() ? memory->mapped() + offset : nullptr; }
};

struct pgr_queue {
  plugrad::vulkan::Stream* stream;
};

struct pgr_kernel {
  plugrad::vulkan::KernelNote note;
  VkPipeline pipeline = VK_NULL_HANDLE;
};

struct pgr_program {
  pgr_kernel kernel;
};

namespace plugrad::vulkan {

inline constexpr uint32_t kQueries = 256;  // per pool
inline constexpr uint32_t kSlots = 16;     // parameters of a kernel that fit the push constants

// Runs `body` as sdk::guard does; also fails if the device is lost or the validation layer reported
// an error.
void before_call(pgr_device& device);
void after_call(pgr_device& device);
template <typename Body>
pgr_status call(pgr_device* device, pgr_error* error, Body&& body) noexcept {
  return sdk::guard(error, [&] {
    sdk::require(device != nullptr, PGR_STATUS_INVALID_ARGUMENT, "device is NULL");
    before_call(*device);
    body();
    after_call(*device);
  });
}
// check() for a call on the device: marks a lost device.
void check_device(pgr_device& device, VkResult result, const char* what);

std::unique_ptr<pgr_device> open_device(pgr_plugin& plugin, uint32_t index, bool validates);

inline Stream& stream_of(pgr_device& device, pgr_queue* queue) {
  return queue ? *queue->stream : *device.streams.front();
}
// Throws StatusError (LAUNCH_FAILED) if completed work contains a loop that the driver aborted.
void report_cut_loops(pgr_device& device);
// Waits for all work of the device.
void finish_all(pgr_device& device);
// Returns the memory when the work queued so far is done.
void retire(pgr_device& device, const MemoryRange& range);
void collect(pgr_device& device);
// Allocates memory; if there is none, waits for freed memory that is still in use.
MemoryRange take_memory(pgr_device& device, uint32_t type, uint64_t size, uint64_t align);

// Timestamp queries; results are converted to ns of the device's clock.
uint32_t take_query(pgr_device& device);
// Returns the query when the work that writes it is done.
void give_back_query(pgr_device& device, uint32_t query, Stream& stream, uint64_t work);
void write_timestamp(pgr_device& device, VkCommandBuffer commands, uint32_t query);
uint64_t read_timestamp(pgr_device& device, uint32_t query);
uint64_t to_ns(const pgr_device& device, uint64_t ticks);
// The device's clock, if it can be read without submitting work.
std::optional<uint64_t> device_now_ns(pgr_device& device);

// Buffers.
void require_range(const pgr_buffer* buffer, uint64_t offset, uint64_t size, const char* what);
void record_copy(const DeviceApi& api, VkCommandBuffer commands, const pgr_buffer& dst,
                 uint64_t dst_offset, const pgr_buffer& src, uint64_t src_offset, uint64_t size);

// A checked launch with all of its arguments, ready to be recorded.
struct PreparedLaunch {
  const pgr_kernel* kernel = nullptr;
  std::vector<uint64_t> slots;  // addresses, then scalars
  uint32_t groups[3] = {0, 0, 0};
  bool is_empty() const { return groups[0] == 0 || groups[1] == 0 || groups[2] == 0; }
};
// Throws StatusError: INVALID_ARGUMENT if the arguments do not fit the kernel, LIMIT_EXCEEDED if
// they exceed the device's limits.
void prepare_launch(const pgr_device& device, const pgr_kernel* kernel, const pgr_launch_desc* desc,
                    PreparedLaunch& out);

// The parts of a binary. Throws StatusError (BAD_BINARY) if it is damaged or for another target.
struct LoadedModule {
  KernelNote note;
  std::vector<uint32_t> words;
};
LoadedModule require_module(const pgr_device* device, const void* binary, uint64_t size);
// The target on which a binary depends; `device` may be NULL.
std::string target_of(const pgr_device* device);
// Compiles GLSL into a binary; the compiler's messages go to `log`. Throws StatusError
// (COMPILE_FAILED).
std::string compile_source(const pgr_device* device, std::string_view source,
                           const std::string& name, std::string& log);
// Throws StatusError (BAD_BINARY) if the driver rejects the module.
VkPipeline make_pipeline(pgr_device& device, const LoadedModule& module);

// Tables; each lives as long as the process.
const pgr_device_api* device_table();
const pgr_allocator_api* allocator_table();
const pgr_compiler_api* compiler_table();
const pgr_runner_api* runner_table();
const pgr_queue_api* queue_table();
const pgr_graph_api* graph_table();
const pgr_profile_api* profile_table();

}  // namespace plugrad::vulkan
