// Declarations shared by the plugin's sources: the objects behind the opaque handles, and the
// tables.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "claims.h"
#include "plugrad/plugin_api/compiler.h"
#include "plugrad/plugin_api/graph.h"
#include "plugrad/plugin_api/queue.h"
#include "plugrad/sdk/host_buffers.h"
#include "plugrad/sdk/interpreter.h"

namespace plugrad::reference {
class WorkQueue;
}

struct pgr_plugin {
  const pgr_host_api* host = nullptr;
  plugrad::reference::Claims claims;  // from the plugin's options; a device's options override them
};

struct pgr_device {
  pgr_plugin* plugin = nullptr;
  plugrad::reference::Claims claims;
  std::vector<pgr_tensor_core> tensor_cores;
  std::atomic<uint64_t> used_bytes{0};
  std::atomic<uint64_t> kernels_launched{0}, bytes_copied{0};
  uint64_t opened_ns = 0;  // start of the device's clock

  std::mutex queues_mutex;
  std::vector<std::shared_ptr<plugrad::reference::WorkQueue>> queues;
  std::shared_ptr<plugrad::reference::WorkQueue> own_queue;  // null: the calling thread
};

struct pgr_buffer : plugrad::sdk::HostBuffer {};

// Shared with its queued work.
struct pgr_kernel {
  std::shared_ptr<const plugrad::sdk::Interpreter> interpreter;
};

struct pgr_program {
  pgr_kernel kernel;
};

namespace plugrad::reference {

inline constexpr uint32_t kBufferAlign = 64;
inline constexpr uint64_t kMostGroups = uint64_t{1} << 40;  // along an axis
// Maximum work-items per group.
inline uint32_t most_items(const Claims& claims) {
  return claims.has_local ? 256 : 1;
}

// Current time of the device's clock.
uint64_t device_now_ns(const pgr_device& device);

// Tables; each lives as long as the process.
const pgr_device_api* device_table();
const pgr_allocator_api* allocator_table();
const pgr_compiler_api* compiler_table();
const pgr_runner_api* runner_table();
const pgr_queue_api* queue_table();
const pgr_graph_api* graph_table();
const pgr_profile_api* profile_table();

}  // namespace plugrad::reference
