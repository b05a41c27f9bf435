// The nodes of a device's graphs, with the arguments that were patched.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "runtime/checks/owned_arguments.h"

namespace plugrad::runtime {

/// Thread-safe; a graph itself is used by one thread at a time.
class RecordedGraphs {
 public:
  void add(pgr_graph* graph, const pgr_graph_node* nodes, uint32_t count, uint32_t stride) {
    const std::lock_guard lock(mutex_);
    graphs_[graph] = std::make_shared<OwnNodes>(nodes, count, stride);
  }
  void remove(pgr_graph* graph) {
    const std::lock_guard lock(mutex_);
    graphs_.erase(graph);
  }
  std::shared_ptr<OwnNodes> of(pgr_graph* graph) const {
    const std::lock_guard lock(mutex_);
    const auto at = graphs_.find(graph);
    return at == graphs_.end() ? nullptr : at->second;
  }
  void patch_buffer(pgr_graph* graph, uint32_t number, uint32_t slot, pgr_buffer* buffer) {
    const auto nodes = of(graph);
    if (!nodes || number >= nodes->nodes.size()) return;
    pgr_graph_node& node = nodes->nodes[number];
    if (node.kind == PGR_GRAPH_COPY)
      (slot == 0 ? node.dst : node.src) = buffer;
    else if (OwnLaunch* launch = launch_of(*nodes, node); slot < launch->buffers.size())
      launch->buffers[slot] = buffer;
  }
  void patch_scalar(pgr_graph* graph, uint32_t number, uint32_t slot, uint64_t bits) {
    const auto nodes = of(graph);
    if (!nodes || number >= nodes->nodes.size()) return;
    const pgr_graph_node& node = nodes->nodes[number];
    if (node.kind != PGR_GRAPH_LAUNCH) return;
    if (OwnLaunch* launch = launch_of(*nodes, node); slot < launch->scalars.size())
      launch->scalars[slot] = bits;
  }

 private:
  static OwnLaunch* launch_of(OwnNodes& nodes, const pgr_graph_node& node) {
    for (const auto& launch : nodes.launches)
      if (&launch->desc == node.launch) return launch.get();
    return nullptr;
  }
  mutable std::mutex mutex_;
  std::unordered_map<pgr_graph*, std::shared_ptr<OwnNodes>> graphs_;
};

}  // namespace plugrad::runtime
