// SPDX-License-Identifier: 0BSD
// Shared declarations of the plugin: the objects behind the opaque handles, and the tables.
#pragma once

#include <atomic>

#include "plugrad/plugin_api/compiler.h"
#include "plugrad/plugin_api/runner.h"
#include "plugrad/sdk/guard.h"
#include "plugrad/sdk/host_buffers.h"

struct pgr_plugin {
  const pgr_host_api* host = nullptr;
};

struct pgr_device {
  pgr_plugin* plugin = nullptr;
  std::atomic<uint64_t> used_bytes{0};
};

// FILL: your device's memory in place of the host's
struct pgr_buffer : plugrad::sdk::HostBuffer {};

namespace acme_plugin {

namespace sdk = plugrad::sdk;

inline constexpr uint32_t kBufferAlign = 64;
inline constexpr uint32_t kMostItems = 256;  // work-items in a group
inline constexpr uint64_t kMostGroups = uint64_t{1} << 40;

// Tables; each lives as long as the process.
const pgr_device_api* device_table();
const pgr_allocator_api* allocator_table();
const pgr_compiler_api* compiler_table();
const pgr_runner_api* runner_table();

}  // namespace acme_plugin
