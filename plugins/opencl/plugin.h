// Declarations shared by the plugin's sources: the objects behind the opaque handles, and the
// tables.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "driver/enumerate.h"
#include "driver/recent_programs.h"
#include "plugrad/plugin_api/compiler.h"
#include "plugrad/plugin_api/graph.h"
#include "plugrad/plugin_api/queue.h"
#include "plugrad/sdk/host_buffers.h"

struct pgr_plugin {
  const pgr_host_api* host = nullptr;
  std::once_flag enumerated;
  std::vector<plugrad::opencl::DeviceFacts> devices;
  std::string why_none;
};

struct pgr_device {
  pgr_plugin* plugin = nullptr;
  plugrad::opencl::DeviceFacts facts;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;  // the queue for a NULL pgr_queue
  std::optional<plugrad::opencl::CommandBufferApi> command_buffers;  // set if graphs use them
  std::atomic<bool> is_lost{false};
  std::atomic<uint64_t> used_bytes{0};
  std::atomic<uint64_t> kernels_launched{0}, bytes_copied{0}, command_buffers_replayed{0};

  plugrad::opencl::RecentPrograms recent_programs;

  std::mutex queues_mutex;
  std::set<pgr_queue*> queues;

  ~pgr_device();
  // Throws StatusError for an error code, and marks the device lost if the code says so.
  void check(cl_int code, const std::string& what);
  void check(cl_int code, const char* what) {
    if (code != CL_SUCCESS) check(code, std::string(what));
  }
};

struct pgr_queue {
  cl_command_queue handle = nullptr;
};

namespace plugrad::opencl {

// Maximum groups along an axis. OpenCL specifies none; every driver accepts this many.
inline constexpr uint64_t most_groups(int axis) {
  return axis == 0 ? (uint64_t{1} << 31) - 1 : 65535;
}

inline cl_command_queue queue_of(const pgr_device& device, const pgr_queue* queue) {
  return queue ? queue->handle : device.queue;
}
cl_command_queue make_queue(pgr_device& device);
// Waits for all queues; throws the first failure.
void finish_all(pgr_device& device);

// A profiling time stamp of an event, in ns of the device's clock.
uint64_t event_ns(pgr_device& device, cl_event event, cl_profiling_info which);

pgr_device_caps make_caps(const pgr_device& device);

// Tables; each lives as long as the process.
const pgr_device_api* device_table();
const pgr_allocator_api* allocator_table();
const pgr_compiler_api* compiler_table();
const pgr_runner_api* runner_table();
const pgr_queue_api* queue_table();
const pgr_graph_api* graph_table();
const pgr_profile_api* profile_table();

}  // namespace plugrad::opencl
