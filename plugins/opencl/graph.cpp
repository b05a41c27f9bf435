// "pgr.graph": launches and copies, checked once and queued at each replay in the given order,
// which satisfies all dependencies: as a command buffer or one by one.
#include "driver/command_buffer.h"
#include "plugrad/sdk/graph_node.h"

struct pgr_graph {
  std::vector<plugrad::opencl::Node> nodes;
  std::unique_ptr<plugrad::opencl::CommandBuffer> recorded;  // a recording of the current nodes
  bool is_refused = false;  // the driver rejected the command buffer
};

namespace plugrad::opencl {
namespace {

LaunchNode read_launch(const pgr_device& device, const pgr_graph_node& node, uint32_t number) {
  sdk::require(node.kernel != nullptr, PGR_STATUS_INVALID_ARGUMENT,
               "node " + std::to_string(number) + ": kernel is NULL");
  const pgr_launch_desc desc = sdk::read(node.launch);
  LaunchNode launch;
  launch.kernel = node.kernel;
  launch.size = check_launch(device, *node.kernel, desc);
  for (uint32_t i = 0; i < desc.buffer_count; ++i) launch.buffers.push_back(desc.buffers[i]->range);
  launch.scalars.assign(desc.scalars, desc.scalars + desc.scalar_count);
  return launch;
}

Node read_node(const pgr_device& device, const pgr_graph_node* nodes, uint32_t stride,
               uint32_t number) {
  const char* at = reinterpret_cast<const char*>(nodes) + uint64_t{number} * stride;
  const pgr_graph_node own = sdk::read(reinterpret_cast<const pgr_graph_node*>(at));
  sdk::dependencies_of(own, number);
  if (own.kind == PGR_GRAPH_LAUNCH) return read_launch(device, own, number);
  sdk::require(
      own.kind == PGR_GRAPH_COPY, PGR_STATUS_INVALID_ARGUMENT,
      "node " + std::to_string(number) + " is of unknown kind " + std::to_string(own.kind));
  sdk::require(own.dst && own.src, PGR_STATUS_INVALID_ARGUMENT,
               "node " + std::to_string(number) + ": dst or src is NULL");
  const CopyWork copy{own.dst->range, own.src->range, own.dst_offset_bytes, own.src_offset_bytes,
                      own.size_bytes};
  check_copy(copy);
  return copy;
}

pgr_status build_graph(pgr_device* device, const pgr_graph_node* nodes, uint32_t node_count,
                       uint32_t node_stride, pgr_graph** out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out && (nodes || node_count == 0), PGR_STATUS_INVALID_ARGUMENT,
                 "build: nodes or out is NULL");
    auto graph = std::make_unique<pgr_graph>();
    for (uint32_t i = 0; i < node_count; ++i)
      graph->nodes.push_back(read_node(*device, nodes, node_stride, i));
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

pgr_status patch_buffer(pgr_device*, pgr_graph* graph, uint32_t number, uint32_t slot,
                        pgr_buffer* buffer, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(buffer != nullptr, PGR_STATUS_INVALID_ARGUMENT, "buffer is NULL");
    Node& node = node_of(graph, number);
    if (auto* launch = std::get_if<LaunchNode>(&node)) {
      if (slot >= launch->buffers.size()) refuse_slot("buffer", slot, number);
      launch->buffers[slot] = buffer->range;
      graph->recorded.reset();
      return;
    }
    if (slot >= 2) refuse_slot("buffer", slot, number);
    // Modifies a copy of the node, so that a rejected patch leaves the graph unchanged.
    CopyWork changed = std::get<CopyWork>(node);
    (slot == 0 ? changed.dst : changed.src) = buffer->range;
    check_copy(changed);
    node = std::move(changed);
    graph->recorded.reset();
  });
}

pgr_status patch_scalar(pgr_device*, pgr_graph* graph, uint32_t number, uint32_t slot,
                        uint64_t bits, pgr_error* error) {
  return sdk::guard(error, [&] {
    auto* launch = std::get_if<LaunchNode>(&node_of(graph, number));
    if (!launch || slot >= launch->scalars.size()) refuse_slot("scalar", slot, number);
    launch->scalars[slot] = bits;
    graph->recorded.reset();
  });
}

void enqueue(pgr_device& device, cl_command_queue queue, const LaunchNode& launch) {
  if (launch.size.is_empty) return;
  pgr_kernel& kernel = *launch.kernel;
  const std::lock_guard lock(kernel.arguments_mutex);
  set_arguments(
      device, kernel.handle, kernel.shape, [&](uint32_t i) { return launch.buffers[i]->handle; },
      launch.scalars.data());
  device.check(api().clEnqueueNDRangeKernel(queue, kernel.handle, launch.size.axes, nullptr,
                                            launch.size.global.data(), launch.size.local.data(), 0,
                                            nullptr, nullptr),
               "clEnqueueNDRangeKernel");
  ++device.kernels_launched;
}

// Returns true if the graph was queued. If the driver rejects it, replaying the list reports the
// error, if there is one.
bool enqueue_recorded(pgr_device& device, cl_command_queue queue, pgr_graph& graph) {
  if (!device.command_buffers || graph.is_refused) return false;
  try {
    if (!graph.recorded)
      graph.recorded =
          std::make_unique<CommandBuffer>(device, *device.command_buffers, graph.nodes);
    graph.recorded->enqueue(queue);
    return true;
  } catch (const sdk::StatusError&) {
    graph.recorded.reset();
    graph.is_refused = true;
    return false;
  }
}

pgr_status replay(pgr_device* device, pgr_queue* queue, pgr_graph* graph, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(graph != nullptr, PGR_STATUS_INVALID_ARGUMENT, "graph is NULL");
    const cl_command_queue on = queue_of(*device, queue);
    if (enqueue_recorded(*device, on, *graph)) return;
    for (const Node& node : graph->nodes) {
      if (const auto* launch = std::get_if<LaunchNode>(&node))
        enqueue(*device, on, *launch);
      else
        enqueue_copy(*device, on, std::get<CopyWork>(node));
    }
  });
}

void destroy_graph(pgr_device*, pgr_graph* graph) {
  delete graph;
}

}  // namespace

const pgr_graph_api* graph_table() {
  static const pgr_graph_api table = [] {
    pgr_graph_api made;
    PGR_INIT(made, GRAPH_API);
    made.build = build_graph;
    made.patch_buffer = patch_buffer;
    made.patch_scalar = patch_scalar;
    made.replay = replay;
    made.destroy = destroy_graph;
    return made;
  }();
  return &table;
}

}  // namespace plugrad::opencl
