// A plugin's tables as the suite calls them: clamped to the fields that the plugin filled, with a
// function that returns UNSUPPORTED in every missing slot.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <tuple>

#include "plugrad/plugin_api/compiler.h"
#include "plugrad/plugin_api/graph.h"
#include "plugrad/plugin_api/queue.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::conformance {

template <typename Function>
struct AbsentSlot;
template <typename... Arguments>
struct AbsentSlot<pgr_status (*)(Arguments...)> {
  static pgr_status call(Arguments... arguments) {
    pgr_error* error = std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...));
    return sdk::report(error, PGR_STATUS_UNSUPPORTED, "the plugin does not offer this function");
  }
};
template <typename... Arguments>
struct AbsentSlot<void (*)(Arguments...)> {
  static void call(Arguments...) {}
};

// True if a slot of a table from `clamp_table` is the plugin's own function.
template <typename Function>
bool offered(Function slot) {
  return slot != nullptr && slot != &AbsentSlot<Function>::call;
}

// Calls `visit(name, slot)` for each function of the table.
#define PLUGRAD_SLOT(name) visit(#name, table.name)
template <typename Visit>
void each_slot(pgr_plugin_api& table, const Visit& visit) {
  PLUGRAD_SLOT(info), PLUGRAD_SLOT(device_count), PLUGRAD_SLOT(device_open);
  PLUGRAD_SLOT(device_close), PLUGRAD_SLOT(query_interface), PLUGRAD_SLOT(shutdown);
}
template <typename Visit>
void each_slot(pgr_device_api& table, const Visit& visit) {
  PLUGRAD_SLOT(info), PLUGRAD_SLOT(caps), PLUGRAD_SLOT(memory_stats);
  PLUGRAD_SLOT(health), PLUGRAD_SLOT(synchronize);
}
template <typename Visit>
void each_slot(pgr_allocator_api& table, const Visit& visit) {
  PLUGRAD_SLOT(alloc), PLUGRAD_SLOT(free), PLUGRAD_SLOT(copy_in), PLUGRAD_SLOT(copy_out);
  PLUGRAD_SLOT(copy), PLUGRAD_SLOT(fill), PLUGRAD_SLOT(map), PLUGRAD_SLOT(unmap);
  PLUGRAD_SLOT(sub_buffer);
}
template <typename Visit>
void each_slot(pgr_runner_api& table, const Visit& visit) {
  PLUGRAD_SLOT(load), PLUGRAD_SLOT(kernel), PLUGRAD_SLOT(limits);
  PLUGRAD_SLOT(launch), PLUGRAD_SLOT(unload);
}
template <typename Visit>
void each_slot(pgr_renderer_api& table, const Visit& visit) {
  PLUGRAD_SLOT(render);
}
template <typename Visit>
void each_slot(pgr_compiler_api& table, const Visit& visit) {
  PLUGRAD_SLOT(compile), PLUGRAD_SLOT(cache_identity);
  PLUGRAD_SLOT(validate), PLUGRAD_SLOT(disassemble);
}
template <typename Visit>
void each_slot(pgr_queue_api& table, const Visit& visit) {
  PLUGRAD_SLOT(create), PLUGRAD_SLOT(destroy), PLUGRAD_SLOT(finish), PLUGRAD_SLOT(record);
  PLUGRAD_SLOT(wait), PLUGRAD_SLOT(event_wait), PLUGRAD_SLOT(event_time);
  PLUGRAD_SLOT(event_destroy);
}
template <typename Visit>
void each_slot(pgr_graph_api& table, const Visit& visit) {
  PLUGRAD_SLOT(build), PLUGRAD_SLOT(patch_buffer), PLUGRAD_SLOT(patch_scalar);
  PLUGRAD_SLOT(replay), PLUGRAD_SLOT(destroy);
}
template <typename Visit>
void each_slot(pgr_profile_api& table, const Visit& visit) {
  PLUGRAD_SLOT(calibrate), PLUGRAD_SLOT(counter);
}
#undef PLUGRAD_SLOT

// Copies the fields of `theirs` that both sides know, and fills missing slots. Returns an error for
// a table of another kind, else empty.
template <typename Table>
std::string_view clamp_table(const void* theirs, uint32_t struct_id, Table& out) {
  std::memset(static_cast<void*>(&out), 0, sizeof out);
  if (!theirs) return "the table is NULL";
  if (reinterpret_cast<uintptr_t>(theirs) % alignof(void*)) return "the table is misaligned";
  pgr_struct_header header;
  std::memcpy(&header, theirs, sizeof header);
  if (header.struct_id != struct_id) return "the table has the struct_id of another struct";
  if (header.struct_size < sizeof header) return "the table is shorter than its header";
  const size_t whole_slots = header.struct_size / sizeof(void*) * sizeof(void*);
  std::memcpy(static_cast<void*>(&out), theirs, std::min(whole_slots, sizeof out));
  each_slot(out, []<typename Function>(const char*, Function& slot) {
    if (!slot) slot = &AbsentSlot<Function>::call;
  });
  return {};
}

}  // namespace plugrad::conformance
