#include "stream.h"

#include "plugin.h"

namespace plugrad::vulkan {
namespace {

// Commands after which a batch is submitted even if the queue is busy.
constexpr uint32_t kMostCommands = 64;
constexpr uint64_t kArgumentBytes = 64 << 10;

}  // namespace

void barrier(const DeviceApi& api, VkCommandBuffer commands) {
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  memory.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                         VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  constexpr VkPipelineStageFlags kStages =
      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  api.vkCmdPipelineBarrier(commands, kStages, kStages, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void barrier_to_host(const DeviceApi& api, VkCommandBuffer commands) {
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  memory.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  api.vkCmdPipelineBarrier(commands,
                           VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                           VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

Stream::Stream(pgr_device& device, HardwareQueue& queue) : device_(device), queue_(queue) {
  const DeviceApi& api = device.api;
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo semaphore{};
  semaphore.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  semaphore.pNext = &type;
  check(api.vkCreateSemaphore(api.handle, &semaphore, nullptr, &semaphore_), "vkCreateSemaphore");
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = device.facts.queue_family;
  check(api.vkCreateCommandPool(api.handle, &pool, nullptr, &pool_), "vkCreateCommandPool");
}

Stream::~Stream() {
  const DeviceApi& api = device_.api;
  if (pool_) api.vkDestroyCommandPool(api.handle, pool_, nullptr);
  if (semaphore_) api.vkDestroySemaphore(api.handle, semaphore_, nullptr);
}

VkCommandBuffer Stream::open() {
  if (open_) return open_;
  const DeviceApi& api = device_.api;
  while (!in_flight_.empty() && reached(in_flight_.front().second)) {
    free_.push_back(in_flight_.front().first);
    in_flight_.pop_front();
  }
  if (free_.empty()) {
    VkCommandBufferAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = pool_;
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    VkCommandBuffer made = VK_NULL_HANDLE;
    check_device(device_, api.vkAllocateCommandBuffers(api.handle, &info, &made),
                 "vkAllocateCommandBuffers");
    free_.push_back(made);
  }
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check_device(device_, api.vkBeginCommandBuffer(free_.back(), &begin), "vkBeginCommandBuffer");
  open_ = free_.back();
  free_.pop_back();
  bound_ = VK_NULL_HANDLE;
  commands_ = 0;
  last_ = submitted_ + 1;
  return open_;
}

void Stream::count_command() {
  if (++commands_ >= kMostCommands || reached(submitted_)) submit_open({});
}

uint64_t Stream::record(const std::function<void(VkCommandBuffer)>& body) {
  const std::lock_guard lock(mutex_);
  const VkCommandBuffer commands = open();
  const uint64_t number = last_;
  barrier(device_.api, commands);
  body(commands);
  count_command();
  return number;
}

void Stream::dispatch(const Dispatch& dispatch) {
  const DeviceApi& api = device_.api;
  const std::lock_guard lock(mutex_);
  const VkCommandBuffer commands = open();
  barrier(api, commands);
  if (bound_ != dispatch.pipeline)
    api.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.pipeline);
  bound_ = dispatch.pipeline;
  api.vkCmdPushConstants(commands, device_.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                         kSlots * sizeof(uint64_t), dispatch.slots);
  api.vkCmdDispatch(commands, dispatch.groups[0], dispatch.groups[1], dispatch.groups[2]);
  count_command();
}

uint64_t Stream::submit(std::span<const VkCommandBuffer> recorded) {
  const std::lock_guard lock(mutex_);
  last_ = submitted_ + 1;
  submit_open(recorded);
  return submitted_;
}

// Submits the open batch, if any, and then `recorded`, as the next work number.
void Stream::submit_open(std::span<const VkCommandBuffer> recorded) {
  const DeviceApi& api = device_.api;
  std::vector<VkCommandBuffer> all;
  if (open_) {
    barrier_to_host(api, open_);
    check_device(device_, api.vkEndCommandBuffer(open_), "vkEndCommandBuffer");
    all.push_back(open_);
  }
  all.insert(all.end(), recorded.begin(), recorded.end());
  const uint64_t value = submitted_ + 1;
  std::vector<VkSemaphore> semaphores;
  std::vector<uint64_t> values;
  for (const auto& [semaphore, at] : waits_) {
    semaphores.push_back(semaphore);
    values.push_back(at);
  }
  const std::vector<VkPipelineStageFlags> stages(waits_.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  VkTimelineSemaphoreSubmitInfo timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  timeline.waitSemaphoreValueCount = static_cast<uint32_t>(values.size());
  timeline.pWaitSemaphoreValues = values.data();
  timeline.signalSemaphoreValueCount = 1;
  timeline.pSignalSemaphoreValues = &value;
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.pNext = &timeline;
  info.waitSemaphoreCount = static_cast<uint32_t>(semaphores.size());
  info.pWaitSemaphores = semaphores.data();
  info.pWaitDstStageMask = stages.data();
  info.commandBufferCount = static_cast<uint32_t>(all.size());
  info.pCommandBuffers = all.data();
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &semaphore_;
  {
    const std::lock_guard lock(queue_.mutex);
    check_device(device_, api.vkQueueSubmit(queue_.handle, 1, &info, VK_NULL_HANDLE),
                 "vkQueueSubmit");
  }
  if (open_) in_flight_.emplace_back(open_, value);
  open_ = VK_NULL_HANDLE;
  waits_.clear();
  submitted_ = value;
}

void Stream::flush() {
  const std::lock_guard lock(mutex_);
  if (last_ > submitted_) submit_open({});
}

void Stream::wait_for(Stream& other, uint64_t value) {
  if (&other == this || other.reached(value)) return;
  other.flush();
  const std::lock_guard lock(mutex_);
  if (open_) submit_open({});
  waits_.emplace_back(other.semaphore_, value);
  last_ = submitted_ + 1;  // finish waits for this number, even if it has no work yet
}

bool Stream::reached(uint64_t value) {
  if (done_ >= value) return true;
  if (value > submitted_) return false;
  uint64_t at = 0;
  check_device(device_, device_.api.vkGetSemaphoreCounterValue(device_.api.handle, semaphore_, &at),
               "vkGetSemaphoreCounterValue");
  uint64_t known = done_;
  while (known < at && !done_.compare_exchange_weak(known, at)) {
  }
  return at >= value;
}

bool Stream::wait(uint64_t value, uint64_t timeout_ns) {
  if (reached(value)) return true;
  if (value > submitted_) flush();
  VkSemaphoreWaitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore_;
  info.pValues = &value;
  const VkResult result = device_.api.vkWaitSemaphores(device_.api.handle, &info, timeout_ns);
  check_device(device_, result, "vkWaitSemaphores");
  if (result == VK_TIMEOUT) return false;
  uint64_t known = done_;
  while (known < value && !done_.compare_exchange_weak(known, value)) {
  }
  return true;
}

// Chunks are used from front to back; a full one is returned when its work is done.
MemoryRange Stream::arguments(uint64_t bytes) {
  if (arguments_used_ + bytes > arguments_.size) {
    {
      const std::lock_guard lock(mutex_);
      open();  // keeps the chunk until the batch that reads it is done
    }
    retire(device_, arguments_);
    arguments_ = {};
    arguments_ = take_memory(device_, device_.facts.host_memory, std::max(bytes, kArgumentBytes),
                             kBufferAlign);
    arguments_used_ = 0;
  }
  MemoryRange range = arguments_;
  range.offset += arguments_used_;
  range.size = bytes;
  arguments_used_ += bytes;
  return range;
}

}  // namespace plugrad::vulkan
