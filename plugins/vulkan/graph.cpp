// "pgr.graph": nodes in chunks; each chunk is a command buffer, recorded once and submitted at
// every replay. Patching a node causes its chunk to be recorded again.
#include <algorithm>
#include <cstring>

#include "plugin.h"
#include "plugrad/sdk/graph_node.h"

namespace {

using plugrad::vulkan::MemoryRange;
using plugrad::vulkan::PreparedLaunch;
using plugrad::vulkan::Stream;

constexpr size_t kChunkNodes = 32;

struct Node {
  bool is_launch = false;
  PreparedLaunch launch;
  std::vector<std::shared_ptr<const MemoryRange>> holds;  // indexed by buffer number
  pgr_buffer dst, src;                                    // of a copy
  uint64_t dst_offset = 0, src_offset = 0, size = 0;
  size_t after = 0;  // index of the last node it depends on, plus 1; 0: none
};

struct Recorded {
  VkCommandBuffer commands = VK_NULL_HANDLE;
  std::vector<MemoryRange> arguments;  // for launches with many parameters
  Stream* stream = nullptr;            // stream of the last submission
  uint64_t work = 0;
};

struct Chunk {
  std::vector<Recorded> recorded;  // newest first
  bool is_stale = true;
};

}  // namespace

struct pgr_graph {
  std::vector<Node> nodes;
  std::vector<Chunk> chunks;
  VkCommandPool pool = VK_NULL_HANDLE;
};

namespace plugrad::vulkan {
namespace {

size_t read_depends(const pgr_graph_node& node, uint32_t number) {
  size_t after = 0;
  for (const uint32_t other : sdk::dependencies_of(node, number))
    after = std::max<size_t>(after, size_t{other} + 1);
  return after;
}

void check_copy(const Node& node) {
  require_range(&node.dst, node.dst_offset, node.size, "dst");
  require_range(&node.src, node.src_offset, node.size, "src");
}

Node read_node(const pgr_device& device, const pgr_graph_node& given, uint32_t number) {
  Node node;
  node.after = read_depends(given, number);
  if (given.kind == PGR_GRAPH_LAUNCH) {
    node.is_launch = true;
    prepare_launch(device, given.kernel, given.launch, node.launch);
    const pgr_launch_desc launch = sdk::read(given.launch);
    for (uint32_t i = 0; i < launch.buffer_count; ++i)
      node.holds.push_back(launch.buffers[i]->memory);
    return node;
  }
  sdk::require(
      given.kind == PGR_GRAPH_COPY, PGR_STATUS_INVALID_ARGUMENT,
      "node " + std::to_string(number) + " is of unknown kind " + std::to_string(given.kind));
  sdk::require(given.dst && given.src, PGR_STATUS_INVALID_ARGUMENT,
               "node " + std::to_string(number) + ": dst or src is NULL");
  node.dst = *given.dst;
  node.src = *given.src;
  node.dst_offset = given.dst_offset_bytes;
  node.src_offset = given.src_offset_bytes;
  node.size = given.size_bytes;
  check_copy(node);
  return node;
}

void destroy_graph(pgr_device* device, pgr_graph* graph) {
  if (!graph) return;
  sdk::guard(nullptr, [&] {
    for (const Chunk& chunk : graph->chunks)
      for (const Recorded& one : chunk.recorded) {
        if (one.stream && !device->is_lost) one.stream->wait(one.work);
        for (const MemoryRange& range : one.arguments) device->memory->give_back(range);
      }
  });
  if (graph->pool) device->api.vkDestroyCommandPool(device->api.handle, graph->pool, nullptr);
  delete graph;
}

pgr_status build(pgr_device* device, const pgr_graph_node* nodes, uint32_t node_count,
                 uint32_t node_stride, pgr_graph** out, pgr_error* error) {
  return call(device, error, [&] {
    sdk::require(out && (nodes || node_count == 0), PGR_STATUS_INVALID_ARGUMENT,
                 "build: nodes or out is NULL");
    auto graph = std::make_unique<pgr_graph>();
    const char* at = reinterpret_cast<const char*>(nodes);
    for (uint32_t i = 0; i < node_count; ++i, at += node_stride)
      graph->nodes.push_back(
          read_node(*device, sdk::read(reinterpret_cast<const pgr_graph_node*>(at)), i));
    graph->chunks.resize((node_count + kChunkNodes - 1) / kChunkNodes);
    VkCommandPoolCreateInfo pool{};
    pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    pool.queueFamilyIndex = device->facts.queue_family;
    check_device(*device,
                 device->api.vkCreateCommandPool(device->api.handle, &pool, nullptr, &graph->pool),
                 "vkCreateCommandPool");
    *out = graph.release();
  });
}

Node& node_of(pgr_graph* graph, uint32_t number) {
  sdk::require(graph != nullptr, PGR_STATUS_INVALID_ARGUMENT, "graph is NULL");
  sdk::require(
      number < graph->nodes.size(), PGR_STATUS_INVALID_ARGUMENT,
      "node " + std::to_string(number) + " of a graph of " + std::to_string(graph->nodes.size()));
  return graph->nodes[number];
}

[[noreturn]] void refuse_slot(const char* what, uint32_t slot, uint32_t node) {
  throw sdk::StatusError(PGR_STATUS_INVALID_ARGUMENT, "node " + std::to_string(node) + " has no " +
                                                          what + " " + std::to_string(slot));
}

pgr_status patch_buffer(pgr_device* device, pgr_graph* graph, uint32_t number, uint32_t slot,
                        pgr_buffer* buffer, pgr_error* error) {
  return call(device, error, [&] {
    sdk::require(buffer != nullptr, PGR_STATUS_INVALID_ARGUMENT, "buffer is NULL");
    Node& node = node_of(graph, number);
    if (slot >= (node.is_launch ? node.holds.size() : 2)) refuse_slot("buffer", slot, number);
    if (node.is_launch) {
      node.launch.slots[slot] = buffer->address();
      node.holds[slot] = buffer->memory;
    } else {
      Node changed = node;
      (slot == 0 ? changed.dst : changed.src) = *buffer;
      check_copy(changed);
      node = std::move(changed);
    }
    graph->chunks[number / kChunkNodes].is_stale = true;
  });
}

pgr_status patch_scalar(pgr_device* device, pgr_graph* graph, uint32_t number, uint32_t slot,
                        uint64_t bits, pgr_error* error) {
  return call(device, error, [&] {
    Node& node = node_of(graph, number);
    if (!node.is_launch || slot >= node.launch.kernel->note.scalars)
      refuse_slot("scalar", slot, number);
    node.launch.slots[node.launch.kernel->note.buffers + slot] = bits;
    graph->chunks[number / kChunkNodes].is_stale = true;
  });
}

void record_launch(pgr_device& device, const PreparedLaunch& launch, Recorded& out) {
  if (launch.is_empty()) return;
  const DeviceApi& api = device.api;
  uint64_t pushed[kSlots] = {};
  const size_t bytes = launch.slots.size() * sizeof(uint64_t);
  if (launch.slots.size() <= kSlots) {
    std::copy(launch.slots.begin(), launch.slots.end(), pushed);
  } else {
    const MemoryRange range = take_memory(device, device.facts.host_memory, bytes, kBufferAlign);
    out.arguments.push_back(range);
    std::memcpy(range.mapped(), launch.slots.data(), bytes);
    pushed[0] = range.address();
  }
  api.vkCmdBindPipeline(out.commands, VK_PIPELINE_BIND_POINT_COMPUTE, launch.kernel->pipeline);
  api.vkCmdPushConstants(out.commands, device.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof pushed,
                         pushed);
  api.vkCmdDispatch(out.commands, launch.groups[0], launch.groups[1], launch.groups[2]);
}

// A command buffer that no replay in flight uses.
Recorded& free_recorded(pgr_device& device, pgr_graph& graph, Chunk& chunk) {
  const DeviceApi& api = device.api;
  const auto found = std::find_if(
      chunk.recorded.begin(), chunk.recorded.end(),
      [](const Recorded& one) { return !one.stream || one.stream->reached(one.work); });
  if (found != chunk.recorded.end()) {
    std::iter_swap(chunk.recorded.begin(), found);
  } else {
    VkCommandBufferAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = graph.pool;
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    Recorded made;
    check_device(device, api.vkAllocateCommandBuffers(api.handle, &info, &made.commands),
                 "vkAllocateCommandBuffers");
    chunk.recorded.insert(chunk.recorded.begin(), made);
  }
  Recorded& out = chunk.recorded.front();
  for (const MemoryRange& range : out.arguments) device.memory->give_back(range);
  out.arguments.clear();
  return out;
}

void record_chunk(pgr_device& device, pgr_graph& graph, size_t number) {
  const DeviceApi& api = device.api;
  Chunk& chunk = graph.chunks[number];
  Recorded& out = free_recorded(device, graph, chunk);
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  check_device(device, api.vkBeginCommandBuffer(out.commands, &begin), "vkBeginCommandBuffer");
  const size_t first = number * kChunkNodes;
  const size_t end = std::min(graph.nodes.size(), first + kChunkNodes);
  size_t done = first;  // earlier nodes precede a barrier
  barrier(api, out.commands);
  for (size_t i = first; i < end; ++i) {
    const Node& node = graph.nodes[i];
    if (node.after > done) {
      barrier(api, out.commands);
      done = i;
    }
    if (node.is_launch)
      record_launch(device, node.launch, out);
    else
      record_copy(api, out.commands, node.dst, node.dst_offset, node.src, node.src_offset,
                  node.size);
  }
  barrier_to_host(api, out.commands);
  check_device(device, api.vkEndCommandBuffer(out.commands), "vkEndCommandBuffer");
  chunk.is_stale = false;
}

pgr_status replay(pgr_device* device, pgr_queue* queue, pgr_graph* graph, pgr_error* error) {
  return call(device, error, [&] {
    sdk::require(graph != nullptr, PGR_STATUS_INVALID_ARGUMENT, "graph is NULL");
    if (graph->nodes.empty()) return;
    std::vector<VkCommandBuffer> commands;
    for (size_t i = 0; i < graph->chunks.size(); ++i) {
      if (graph->chunks[i].is_stale) record_chunk(*device, *graph, i);
      commands.push_back(graph->chunks[i].recorded.front().commands);
    }
    Stream& stream = stream_of(*device, queue);
    const uint64_t work = stream.submit(commands);
    // Replays on several queues may be in flight: the later one is waited for; the queue's order or
    // the caller ensures that the earlier one has completed.
    for (Chunk& chunk : graph->chunks) {
      chunk.recorded.front().stream = &stream;
      chunk.recorded.front().work = work;
    }
    for (const Node& node : graph->nodes)
      if (node.is_launch)
        ++device->kernels_launched;
      else
        device->bytes_copied += node.size;
  });
}

}  // namespace

const pgr_graph_api* graph_table() {
  static const pgr_graph_api table = [] {
    pgr_graph_api made;
    PGR_INIT(made, GRAPH_API);
    made.build = build;
    made.patch_buffer = patch_buffer;
    made.patch_scalar = patch_scalar;
    made.replay = replay;
    made.destroy = destroy_graph;
    return made;
  }();
  return &table;
}

}  // namespace plugrad::vulkan
