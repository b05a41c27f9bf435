// Timestamp queries, allocated from pools and returned when their work is done.
#include "plugin.h"

namespace plugrad::vulkan {
namespace {

VkQueryPool make_pool(pgr_device& device) {
  const DeviceApi& api = device.api;
  VkQueryPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = kQueries;
  VkQueryPool pool = VK_NULL_HANDLE;
  check_device(device, api.vkCreateQueryPool(api.handle, &info, nullptr, &pool),
               "vkCreateQueryPool");
  return pool;
}

VkQueryPool pool_of(pgr_device& device, uint32_t query) {
  const std::lock_guard lock(device.mutex);
  return device.query_pools[query / kQueries];
}

}  // namespace

uint32_t take_query(pgr_device& device) {
  const std::lock_guard lock(device.mutex);
  std::erase_if(device.retired_queries, [&](const pgr_device::RetiredQuery& one) {
    const bool is_done = one.stream->reached(one.work);
    if (is_done) device.free_queries.push_back(one.query);
    return is_done;
  });
  if (device.free_queries.empty()) {
    const uint32_t first = static_cast<uint32_t>(device.query_pools.size()) * kQueries;
    device.query_pools.push_back(make_pool(device));
    for (uint32_t i = 0; i < kQueries; ++i) device.free_queries.push_back(first + i);
  }
  const uint32_t query = device.free_queries.back();
  device.free_queries.pop_back();
  return query;
}

void give_back_query(pgr_device& device, uint32_t query, Stream& stream, uint64_t work) {
  const std::lock_guard lock(device.mutex);
  device.retired_queries.push_back({query, &stream, work});
}

void write_timestamp(pgr_device& device, VkCommandBuffer commands, uint32_t query) {
  const VkQueryPool pool = pool_of(device, query);
  device.api.vkCmdResetQueryPool(commands, pool, query % kQueries, 1);
  device.api.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool,
                                 query % kQueries);
}

uint64_t read_timestamp(pgr_device& device, uint32_t query) {
  uint64_t ticks = 0;
  check_device(device,
               device.api.vkGetQueryPoolResults(
                   device.api.handle, pool_of(device, query), query % kQueries, 1, sizeof ticks,
                   &ticks, sizeof ticks, VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
               "vkGetQueryPoolResults");
  return ticks;
}

uint64_t to_ns(const pgr_device& device, uint64_t ticks) {
  const double period = device.facts.limits.timestampPeriod;
  if (period == 1.0) return ticks;
  return static_cast<uint64_t>(static_cast<long double>(ticks) * period);
}

}  // namespace plugrad::vulkan
