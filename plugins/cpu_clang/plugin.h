// Declarations shared by the plugin's sources: the objects behind the opaque handles, and the
// tables.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "cpu_facts.h"
#include "plugrad/plugin_api/compiler.h"
#include "plugrad/plugin_api/runner.h"

struct pgr_plugin {
  const pgr_host_api* host = nullptr;
  plugrad::cpu_clang::CpuFacts cpu;
  // Opened on first use; the compiler only on a cache miss.
  std::mutex components_mutex;
  const pgr_renderer_api* renderer = nullptr;
  const pgr_compiler_api* compiler = nullptr;
};

struct pgr_device {
  pgr_plugin* plugin = nullptr;
  plugrad::cpu_clang::CpuFacts cpu;  // as restricted by the options
  std::atomic<uint64_t> used_bytes{0};
};

namespace plugrad::cpu_clang {

inline constexpr uint32_t kBufferAlign = 64;
inline constexpr uint64_t kMostGroups = uint64_t{1} << 40;  // along an axis

// Tables; each lives as long as the process.
const pgr_device_api* device_table();
const pgr_allocator_api* allocator_table();
const pgr_renderer_api* renderer_table();
const pgr_compiler_api* compiler_table();
const pgr_runner_api* runner_table();

// Host address of a buffer's first byte.
void* address_of(const pgr_buffer* buffer);

}  // namespace plugrad::cpu_clang
