// Deep copies of call arguments, with their arrays and texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "plugrad/plugin_api/graph.h"
#include "runtime/status.h"

namespace plugrad::runtime {

using Bytes = std::vector<std::byte>;

inline Bytes copy_of(const void* data, uint64_t size) {
  const auto* from = static_cast<const std::byte*>(data);
  return from ? Bytes(from, from + size) : Bytes();
}

// A launch description that owns its arrays.
struct OwnLaunch {
  explicit OwnLaunch(const pgr_launch_desc& theirs)
      : desc(theirs),
        buffers(theirs.buffers, theirs.buffers + theirs.buffer_count),
        scalars(theirs.scalars, theirs.scalars + theirs.scalar_count) {
    desc.buffers = buffers.data();
    desc.scalars = scalars.data();
  }
  OwnLaunch(const OwnLaunch&) = delete;
  OwnLaunch& operator=(const OwnLaunch&) = delete;
  pgr_launch_desc desc;
  std::vector<pgr_buffer*> buffers;
  std::vector<uint64_t> scalars;
};

struct OwnNodes {
  OwnNodes(const pgr_graph_node* theirs, uint32_t count, uint32_t stride) {
    for (uint32_t i = 0; i < count; ++i) {
      pgr_graph_node node;
      std::memcpy(&node, reinterpret_cast<const std::byte*>(theirs) + std::size_t{i} * stride,
                  sizeof node);
      depends.emplace_back(node.depends, node.depends + node.depends_count);
      node.depends = depends.back().data();
      if (node.launch) {
        launches.push_back(std::make_unique<OwnLaunch>(*node.launch));
        node.launch = &launches.back()->desc;
      }
      nodes.push_back(node);
    }
  }
  std::vector<pgr_graph_node> nodes;
  std::vector<std::vector<uint32_t>> depends;
  std::vector<std::unique_ptr<OwnLaunch>> launches;
};

struct OwnOptions {
  OwnOptions(const pgr_option* theirs, uint32_t count, uint32_t stride) {
    texts.reserve(std::size_t{count} * 2);
    for (uint32_t i = 0; i < count; ++i) {
      pgr_option option;
      std::memcpy(&option, reinterpret_cast<const std::byte*>(theirs) + std::size_t{i} * stride,
                  sizeof option);
      for (pgr_string* text : {&option.key, &option.value})
        *text = c_string(texts.emplace_back(view(*text)));
      options.push_back(option);
    }
  }
  std::vector<std::string> texts;
  std::vector<pgr_option> options;
};

}  // namespace plugrad::runtime
