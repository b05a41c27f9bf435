// "pgr.graph": a copy of the nodes. A replay queues the nodes in the given order, which satisfies
// all dependencies.
#include <variant>

#include "plugrad/sdk/graph_node.h"
#include "work_queue.h"

struct pgr_graph {
  using Node = std::variant<plugrad::reference::LaunchWork, plugrad::reference::CopyWork>;
  std::vector<Node> nodes;
};

namespace plugrad::reference {
namespace {

pgr_graph::Node read_node(const pgr_device& device, const pgr_graph_node* nodes, uint32_t stride,
                          uint32_t number) {
  const char* at = reinterpret_cast<const char*>(nodes) + uint64_t{number} * stride;
  const pgr_graph_node own = sdk::read(reinterpret_cast<const pgr_graph_node*>(at));
  sdk::dependencies_of(own, number);
  if (own.kind == PGR_GRAPH_LAUNCH) return read_launch(device, own.kernel, own.launch);
  sdk::require(
      own.kind == PGR_GRAPH_COPY, PGR_STATUS_INVALID_ARGUMENT,
      "node " + std::to_string(number) + " is of unknown kind " + std::to_string(own.kind));
  sdk::require(own.dst && own.src, PGR_STATUS_INVALID_ARGUMENT,
               "node " + std::to_string(number) + ": dst or src is NULL");
  CopyWork copy{*own.dst, *own.src, own.dst_offset_bytes, own.src_offset_bytes, own.size_bytes};
  check_copy(copy);
  return copy;
}

pgr_status build(pgr_device* device, const pgr_graph_node* nodes, uint32_t node_count,
                 uint32_t node_stride, pgr_graph** out, pgr_error* error) {
  return sdk::guard(error, [&] {
    require_interface(device->claims.has_graph, "pgr.graph");
    sdk::require(out && (nodes || node_count == 0), PGR_STATUS_INVALID_ARGUMENT,
                 "build: nodes or out is NULL");
    auto graph = std::make_unique<pgr_graph>();
    for (uint32_t i = 0; i < node_count; ++i)
      graph->nodes.push_back(read_node(*device, nodes, node_stride, i));
    *out = graph.release();
  });
}

pgr_graph::Node& node_of(pgr_graph* graph, uint32_t number) {
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

// For a copy, slot 0 is the destination and slot 1 the source.
sdk::HostBuffer& buffer_slot(pgr_graph::Node& node, uint32_t slot, uint32_t number) {
  if (auto* launch = std::get_if<LaunchWork>(&node)) {
    if (slot < launch->buffers.size()) return launch->buffers[slot];
  } else if (slot < 2) {
    CopyWork& copy = std::get<CopyWork>(node);
    return slot == 0 ? copy.dst : copy.src;
  }
  refuse_slot("buffer", slot, number);
}

// Modifies a copy of the node, so that a rejected patch leaves the graph unchanged.
template <typename Change>
void patch(pgr_graph::Node& node, const Change& change) {
  pgr_graph::Node changed = node;
  change(changed);
  if (const auto* launch = std::get_if<LaunchWork>(&changed))
    check_launch(*launch);
  else
    check_copy(std::get<CopyWork>(changed));
  node = std::move(changed);
}

pgr_status patch_buffer(pgr_device*, pgr_graph* graph, uint32_t number, uint32_t slot,
                        pgr_buffer* buffer, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(buffer != nullptr, PGR_STATUS_INVALID_ARGUMENT, "buffer is NULL");
    patch(node_of(graph, number),
          [&](pgr_graph::Node& node) { buffer_slot(node, slot, number) = *buffer; });
  });
}

pgr_status patch_scalar(pgr_device*, pgr_graph* graph, uint32_t number, uint32_t slot,
                        uint64_t bits, pgr_error* error) {
  return sdk::guard(error, [&] {
    patch(node_of(graph, number), [&](pgr_graph::Node& node) {
      auto* launch = std::get_if<LaunchWork>(&node);
      if (!launch || slot >= launch->scalars.size()) refuse_slot("scalar", slot, number);
      launch->scalars[slot] = bits;
    });
  });
}

pgr_status replay(pgr_device* device, pgr_queue* queue, pgr_graph* graph, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(graph != nullptr, PGR_STATUS_INVALID_ARGUMENT, "graph is NULL");
    for (const pgr_graph::Node& node : graph->nodes) {
      if (const auto* launch = std::get_if<LaunchWork>(&node))
        submit(*device, queue, make_work(*device, *launch, nullptr));
      else
        submit(*device, queue, make_work(*device, std::get<CopyWork>(node)));
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
    made.build = build;
    made.patch_buffer = patch_buffer;
    made.patch_scalar = patch_scalar;
    made.replay = replay;
    made.destroy = destroy_graph;
    return made;
  }();
  return &table;
}

}  // namespace plugrad::reference
