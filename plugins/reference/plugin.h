// What the plugin's parts share: the objects behind the opaque handles, and the tables.
#pragma once

#include <atomic>
#include <string>

#include "claims.h"
#include "plugrad/plugin_api/compiler.h"
#include "plugrad/plugin_api/runner.h"

struct pgr_plugin {
  const pgr_host_api* host = nullptr;
  std::string withdraw;  // option of the plugin; a device's own comes instead
};

struct pgr_device {
  pgr_plugin* plugin = nullptr;
  plugrad::reference::Claims claims;
  std::atomic<uint64_t> used_bytes{0};
};

struct pgr_buffer {
  pgr_device* device;
  char* data;
  uint64_t size;
  pgr_buffer* parent;             // of a sub-buffer, which keeps it alive
  std::atomic<uint32_t> holders;  // handles and sub-buffers that need the memory
};

namespace plugrad::reference {

inline constexpr uint32_t kBufferAlign = 64;

// Tables; each lives as long as the process.
const pgr_device_api* device_table();
const pgr_allocator_api* allocator_table();
const pgr_compiler_api* compiler_table();
const pgr_runner_api* runner_table();

}  // namespace plugrad::reference
