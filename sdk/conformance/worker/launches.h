// Launches in the worker on buffers in the channel: how a kernel that may crash or hang is tried
// and timed.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <utility>

#include "conformance/plugin/device.h"
#include "conformance/worker/channel.h"
#include "plugrad/sdk/ir_view.h"

namespace plugrad::conformance {

constexpr uint32_t kMaxLaunchBuffers = 64, kMaxLaunchScalars = 64;

// Lies in the channel's message area, request and answer.
struct LaunchMessage {
  uint64_t kernel;  // number that loading it gave
  uint32_t buffer_count, scalar_count;
  struct Range {
    uint64_t offset, size_bytes;  // in the channel's buffers
  } buffers[kMaxLaunchBuffers];
  uint64_t scalars[kMaxLaunchScalars];
  uint64_t group_count[3];
  uint32_t local_size[3];
  // The answer.
  uint32_t failed;
  uint64_t time_ns;  // of the kernel, as the runner measured it
  char error[1024];
};

class Launches {
 public:
  Launches(Device& device, Channel& channel) : device_(device), channel_(channel) {}

  // The number of the kernel. Throws Failed.
  uint64_t load(std::span<const std::byte> kernel_ir);
  // Copies the buffers to the device, launches, copies those back that the kernel writes.
  void launch(LaunchMessage& message);

 private:
  struct Loaded {
    std::unique_ptr<Kernel> kernel;
    std::vector<bool> writes;  // by buffer
  };
  void run(LaunchMessage& message);
  Buffer& device_buffer(const LaunchMessage::Range& range);

  Device& device_;
  Channel& channel_;
  std::vector<Loaded> kernels_;
  std::map<std::pair<uint64_t, uint64_t>, Buffer> buffers_;  // by range; kept for the next launch
};

}  // namespace plugrad::conformance
