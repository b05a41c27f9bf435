// "pgr.graph": a CUDA graph of explicit nodes. Patches modify the instantiated graph.
#include <algorithm>
#include <variant>

#include "plugin.h"
#include "plugrad/sdk/graph_node.h"

namespace plugrad::cuda {
namespace {

constexpr uint64_t kMostPitch = INT32_MAX;  // maximum row pitch; a single row has none

struct CopyNode {
  pgr_buffer dst, src;
  uint64_t dst_offset = 0, src_offset = 0, size = 0;
  Memcpy3D params() const {
    Memcpy3D copy{};
    copy.src_type = copy.dst_type = kMemoryTypeDevice;
    copy.src_device = address_of(&src, src_offset, size, "src");
    copy.dst_device = address_of(&dst, dst_offset, size, "dst");
    copy.width = size;
    if (size <= kMostPitch) copy.src_pitch = copy.dst_pitch = size;
    copy.height = copy.depth = 1;
    return copy;
  }
};

struct LaunchNode {
  std::unique_ptr<Launch> launch;
  std::vector<pgr_buffer> buffers;  // keep their memory alive
};

// A launch without work-items or a copy of 0 bytes is an empty node, which patches cannot fill.
struct Node {
  std::variant<LaunchNode, CopyNode> work;
  CUgraphNode handle = nullptr;
  bool is_empty = false;
};

}  // namespace
}  // namespace plugrad::cuda

struct pgr_graph {
  explicit pgr_graph(pgr_device& on) : device(on) {}
  ~pgr_graph();
  pgr_device& device;
  plugrad::cuda::CUgraph graph = nullptr;
  plugrad::cuda::CUgraphExec exec = nullptr;
  std::vector<plugrad::cuda::Node> nodes;
  uint64_t kernels = 0, bytes = 0;  // per replay
};

// Waits for replays in flight.
pgr_graph::~pgr_graph() {
  plugrad::sdk::guard(nullptr, [&] {
    const plugrad::cuda::ContextScope scope(device);
    if (exec) device.driver->synchronize();
    if (exec) device.driver->graph_exec_destroy(exec);
    if (graph) device.driver->graph_destroy(graph);
  });
}

namespace plugrad::cuda {
namespace {

std::string name_of(uint32_t number) {
  return "node " + std::to_string(number);
}

LaunchNode read_launch(const pgr_device& device, const pgr_graph_node& node) {
  LaunchNode made;
  made.launch = std::make_unique<Launch>(device, node.kernel, node.launch);
  const pgr_launch_desc desc = sdk::read(node.launch);
  for (uint32_t i = 0; i < desc.buffer_count; ++i) made.buffers.push_back(*desc.buffers[i]);
  return made;
}

CopyNode read_copy(const pgr_graph_node& node, uint32_t number) {
  sdk::require(node.dst && node.src, PGR_STATUS_INVALID_ARGUMENT,
               name_of(number) + ": dst or src is NULL");
  CopyNode copy{*node.dst, *node.src, node.dst_offset_bytes, node.src_offset_bytes,
                node.size_bytes};
  copy.params();  // checks the ranges
  return copy;
}

Node read_node(const pgr_device& device, const pgr_graph_node& node, uint32_t number) {
  Node made;
  if (node.kind == PGR_GRAPH_LAUNCH) {
    LaunchNode launch = read_launch(device, node);
    made.is_empty = launch.launch->is_empty;
    made.work = std::move(launch);
  } else {
    sdk::require(node.kind == PGR_GRAPH_COPY, PGR_STATUS_INVALID_ARGUMENT,
                 name_of(number) + " is of unknown kind " + std::to_string(node.kind));
    CopyNode copy = read_copy(node, number);
    made.is_empty = copy.size == 0;
    made.work = std::move(copy);
  }
  return made;
}

std::vector<CUgraphNode> dependencies(const pgr_graph& graph, const pgr_graph_node& node,
                                      uint32_t number) {
  std::vector<CUgraphNode> handles;
  for (const uint32_t other : sdk::dependencies_of(node, number)) {
    const CUgraphNode handle = graph.nodes[other].handle;
    if (std::find(handles.begin(), handles.end(), handle) == handles.end())
      handles.push_back(handle);
  }
  return handles;
}

void add_node(pgr_graph& graph, Node node, const std::vector<CUgraphNode>& after) {
  const Driver& driver = *graph.device.driver;
  CUresult result;
  if (node.is_empty) {
    result = driver.graph_add_empty(&node.handle, graph.graph, after.data(), after.size());
  } else if (auto* launch = std::get_if<LaunchNode>(&node.work)) {
    const KernelNodeParams params = launch->launch->node();
    ++graph.kernels;
    result =
        driver.graph_add_kernel(&node.handle, graph.graph, after.data(), after.size(), &params);
  } else {
    const Memcpy3D params = std::get<CopyNode>(node.work).params();
    graph.bytes += params.width;
    result = driver.graph_add_copy(&node.handle, graph.graph, after.data(), after.size(), &params,
                                   graph.device.context);
  }
  check(graph.device, result, "adding a node to a graph");
  graph.nodes.push_back(std::move(node));
}

pgr_status build(pgr_device* device, const pgr_graph_node* nodes, uint32_t node_count,
                 uint32_t node_stride, pgr_graph** out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out && (nodes || node_count == 0), PGR_STATUS_INVALID_ARGUMENT,
                 "build: nodes or out is NULL");
    const ContextScope scope(*device);
    auto graph = std::make_unique<pgr_graph>(*device);
    check(*device, device->driver->graph_create(&graph->graph, 0), "cuGraphCreate");
    const char* at = reinterpret_cast<const char*>(nodes);
    for (uint32_t i = 0; i < node_count; ++i, at += node_stride) {
      const pgr_graph_node own = sdk::read(reinterpret_cast<const pgr_graph_node*>(at));
      const std::vector<CUgraphNode> after = dependencies(*graph, own, i);
      add_node(*graph, read_node(*device, own, i), after);
    }
    check(*device, device->driver->graph_instantiate(&graph->exec, graph->graph, 0),
          "cuGraphInstantiateWithFlags");
    *out = graph.release();
  });
}

Node& node_of(pgr_graph* graph, uint32_t number) {
  sdk::require(graph != nullptr, PGR_STATUS_INVALID_ARGUMENT, "graph is NULL");
  sdk::require(number < graph->nodes.size(), PGR_STATUS_INVALID_ARGUMENT,
               name_of(number) + " of a graph of " + std::to_string(graph->nodes.size()));
  return graph->nodes[number];
}

[[noreturn]] void refuse_slot(const char* what, uint32_t slot, uint32_t number) {
  throw sdk::StatusError(PGR_STATUS_INVALID_ARGUMENT,
                         name_of(number) + " has no " + what + " " + std::to_string(slot));
}

// Index of buffer or scalar number `slot` among a kernel's parameters.
size_t param_index(const pgr_kernel& kernel, char letter, uint32_t slot, uint32_t number) {
  uint32_t before = 0;
  for (size_t i = 0; i < kernel.params.size(); ++i)
    if (kernel.params[i] == letter && before++ == slot) return i;
  refuse_slot(letter == 'b' ? "buffer" : "scalar", slot, number);
}

void set_launch(pgr_graph& graph, const Node& node, Launch& launch) {
  if (node.is_empty) return;
  const ContextScope scope(graph.device);
  const KernelNodeParams params = launch.node();
  check(graph.device, graph.device.driver->graph_set_kernel(graph.exec, node.handle, &params),
        "cuGraphExecKernelNodeSetParams");
}

void patch_copy(pgr_graph& graph, Node& node, uint32_t slot, const pgr_buffer& buffer,
                uint32_t number) {
  CopyNode changed = std::get<CopyNode>(node.work);
  if (slot > 1) refuse_slot("buffer", slot, number);
  (slot == 0 ? changed.dst : changed.src) = buffer;
  const Memcpy3D params = changed.params();
  if (!node.is_empty) {
    const ContextScope scope(graph.device);
    check(
        graph.device,
        graph.device.driver->graph_set_copy(graph.exec, node.handle, &params, graph.device.context),
        "cuGraphExecMemcpyNodeSetParams");
  }
  node.work = std::move(changed);
}

pgr_status patch_buffer(pgr_device*, pgr_graph* graph, uint32_t number, uint32_t slot,
                        pgr_buffer* buffer, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(buffer != nullptr, PGR_STATUS_INVALID_ARGUMENT, "buffer is NULL");
    Node& node = node_of(graph, number);
    auto* work = std::get_if<LaunchNode>(&node.work);
    if (!work) return patch_copy(*graph, node, slot, *buffer, number);
    Launch& launch = *work->launch;
    launch.values[param_index(*launch.kernel, 'b', slot, number)] = buffer->address;
    set_launch(*graph, node, launch);
    work->buffers[slot] = *buffer;
  });
}

pgr_status patch_scalar(pgr_device*, pgr_graph* graph, uint32_t number, uint32_t slot,
                        uint64_t bits, pgr_error* error) {
  return sdk::guard(error, [&] {
    Node& node = node_of(graph, number);
    auto* work = std::get_if<LaunchNode>(&node.work);
    if (!work) refuse_slot("scalar", slot, number);
    Launch& launch = *work->launch;
    launch.values[param_index(*launch.kernel, 's', slot, number)] = bits;
    set_launch(*graph, node, launch);
  });
}

pgr_status replay(pgr_device* device, pgr_queue* queue, pgr_graph* graph, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(graph != nullptr, PGR_STATUS_INVALID_ARGUMENT, "graph is NULL");
    const ContextScope scope(*device);
    check(*device, device->driver->graph_launch(graph->exec, queue_of(*device, queue).stream),
          "cuGraphLaunch");
    device->kernels_launched += graph->kernels;
    device->bytes_copied += graph->bytes;
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
    made.build = build;
    made.patch_buffer = patch_buffer;
    made.patch_scalar = patch_scalar;
    made.replay = replay;
    made.destroy = destroy_graph;
    return made;
  }();
  return &table;
}

}  // namespace plugrad::cuda
