// The interface to a device: its handle and the tables that the host copied.
#pragma once

#include "runtime/device/tables.h"

namespace plugrad::runtime {

/// Those of the plugin or of the outermost layer around it. Absent functions are stubs.
struct DeviceTables {
  pgr_device* handle = nullptr;
  pgr_device* renderer_handle = nullptr;  // the renderer's first argument: NULL for a component's
  pgr_device_api device{};
  pgr_allocator_api allocator_api{};
  pgr_runner_api runner{};
  pgr_renderer_api renderer{};
  pgr_compiler_api compiler{};
  pgr_queue_api queue{};
  pgr_graph_api graph{};
  pgr_profile_api profile{};
};

}  // namespace plugrad::runtime
