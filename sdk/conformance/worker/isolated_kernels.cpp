#include "conformance/worker/isolated_kernels.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace plugrad::conformance {

IsolatedKernels::IsolatedKernels(WorkerTarget target, std::chrono::nanoseconds limit)
    : worker_(std::move(target)), limit_(limit) {
  const std::string refusal = worker_.open(limit_);
  if (!refusal.empty()) throw std::runtime_error("the plugin cannot be opened: " + refusal);
}

void IsolatedKernels::fail(const std::string& what) const {
  const Ending& ending = worker_.ending();
  throw std::runtime_error(what + " " + ending.describe() + "\n" + ending.stack);
}

std::span<std::byte> IsolatedKernels::allocate(uint64_t size_bytes) {
  constexpr uint64_t kAlign = 4096;
  const std::span<std::byte> all = worker_.channel().buffers();
  if (size_bytes > all.size() - used_bytes_)
    throw std::runtime_error(
        "the memory shared with the worker is used up: " + std::to_string(size_bytes) +
        " bytes of " + std::to_string(all.size() - used_bytes_));
  const std::span<std::byte> part = all.subspan(used_bytes_, size_bytes);
  used_bytes_ =
      std::min<uint64_t>((used_bytes_ + size_bytes + kAlign - 1) / kAlign * kAlign, all.size());
  return part;
}

uint64_t IsolatedKernels::load(std::span<const std::byte> kernel_ir) {
  const auto reply = worker_.ask(Request::LoadKernel, "", kernel_ir, limit_);
  if (!reply) fail("loading the kernel");
  const nlohmann::json answer = nlohmann::json::parse(reply->text);
  if (answer.contains("error")) throw std::runtime_error(answer["error"].get<std::string>());
  return answer["kernel"].get<uint64_t>();
}

uint64_t IsolatedKernels::launch(const IsolatedLaunch& launch) {
  if (launch.buffers.size() > kMaxLaunchBuffers || launch.scalars.size() > kMaxLaunchScalars)
    throw std::runtime_error("a kernel takes too many arguments for the worker");
  auto& message = *reinterpret_cast<LaunchMessage*>(worker_.channel().message_area());
  message.kernel = launch.kernel;
  message.buffer_count = static_cast<uint32_t>(launch.buffers.size());
  message.scalar_count = static_cast<uint32_t>(launch.scalars.size());
  for (size_t i = 0; i < launch.buffers.size(); ++i)
    message.buffers[i] = {
        static_cast<uint64_t>(launch.buffers[i].data() - worker_.channel().buffers().data()),
        launch.buffers[i].size()};
  std::copy(launch.scalars.begin(), launch.scalars.end(), message.scalars);
  std::copy(launch.group_count.begin(), launch.group_count.end(), message.group_count);
  std::copy(launch.local_size.begin(), launch.local_size.end(), message.local_size);
  if (!worker_.exchange(Request::Launch, limit_)) fail("the launch");
  if (message.failed) throw std::runtime_error(message.error);
  return message.time_ns;
}

}  // namespace plugrad::conformance
