// Records a graph's commands once with cl_khr_command_buffer; each replay submits one command.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <variant>

#include "runner.h"

namespace plugrad::opencl {

struct LaunchNode {
  pgr_kernel* kernel = nullptr;
  LaunchSize size;
  std::vector<std::shared_ptr<Range>> buffers;
  std::vector<uint64_t> scalars;
};
using Node = std::variant<LaunchNode, CopyWork>;

// True if devices with command buffers should use them.
bool prefers_command_buffers(bool is_cpu);

// nullopt if the device has none, or replaying command by command is faster.
std::optional<CommandBufferApi> find_command_buffers(const DeviceFacts& facts);

// Its functions throw StatusError if the driver reports an error.
class CommandBuffer {
 public:
  CommandBuffer(pgr_device& device, const CommandBufferApi& functions, std::span<const Node> nodes);
  // Waits for its replays, which use the kernels and buffers.
  ~CommandBuffer() { release(); }
  CommandBuffer(const CommandBuffer&) = delete;
  CommandBuffer& operator=(const CommandBuffer&) = delete;

  void enqueue(cl_command_queue queue);

 private:
  void create();
  void record(const LaunchNode& launch);
  void record(const CopyWork& copy);
  void wait_for_replays();
  void release();

  pgr_device& device_;
  const CommandBufferApi& functions_;
  cl_command_buffer_khr handle_ = nullptr;
  std::vector<cl_kernel> kernels_;  // one per launch: a driver may read arguments at replay
  std::vector<std::shared_ptr<Range>> ranges_;
  uint64_t copied_bytes_ = 0;                  // per replay
  std::map<cl_command_queue, cl_event> last_;  // end of the last replay on each queue
};

}  // namespace plugrad::opencl
