#include "conformance/worker/launches.h"

#include <algorithm>
#include <cstring>

#include "conformance/test.h"

namespace plugrad::conformance {

uint64_t Launches::load(std::span<const std::byte> kernel_ir) {
  const sdk::IrView ir = sdk::decode_ir(kernel_ir);
  Loaded loaded;
  for (const pgr_ir_param& param : ir.params())
    if (param.kind == PGR_PARAM_BUFFER) loaded.writes.push_back(param.flags & PGR_PARAM_WRITE);
  loaded.kernel = device_.compile(kernel_ir, ir.contract());
  kernels_.push_back(std::move(loaded));
  return kernels_.size() - 1;
}

Buffer& Launches::device_buffer(const LaunchMessage::Range& range) {
  const std::pair key(range.offset, range.size_bytes);
  auto found = buffers_.find(key);
  if (found == buffers_.end())
    found = buffers_.emplace(key, device_.allocate(range.size_bytes)).first;
  return found->second;
}

void Launches::run(LaunchMessage& message) {
  expect(message.kernel < kernels_.size(), "no such kernel was loaded");
  const Loaded& loaded = kernels_[message.kernel];
  expect(message.buffer_count == loaded.writes.size(),
         "the kernel takes " + std::to_string(loaded.writes.size()) + " buffers");
  KernelLaunch launch;
  for (uint32_t i = 0; i < message.buffer_count; ++i) {
    const LaunchMessage::Range& range = message.buffers[i];
    Buffer& buffer = device_buffer(range);
    buffer.write(channel_.buffers().subspan(range.offset, range.size_bytes));
    launch.buffers.push_back(buffer.handle());
  }
  launch.scalars.assign(message.scalars, message.scalars + message.scalar_count);
  std::copy_n(message.group_count, 3, launch.group_count.begin());
  std::copy_n(message.local_size, 3, launch.local_size.begin());
  device_.launch(*loaded.kernel, launch, &message.time_ns);
  for (uint32_t i = 0; i < message.buffer_count; ++i) {
    const LaunchMessage::Range& range = message.buffers[i];
    if (loaded.writes[i])
      device_buffer(range).read(channel_.buffers().subspan(range.offset, range.size_bytes));
  }
}

void Launches::launch(LaunchMessage& message) {
  message.failed = 0;
  try {
    run(message);
  } catch (const std::exception& error) {
    message.failed = 1;
    std::strncpy(message.error, error.what(), sizeof message.error - 1);
    message.error[sizeof message.error - 1] = '\0';
  }
}

}  // namespace plugrad::conformance
