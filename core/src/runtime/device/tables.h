// Copies a plugin's tables: clamped to the part that the plugin filled, with stubs that return
// UNSUPPORTED in absent slots, so that no call is to NULL.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "plugrad/plugin_api/compiler.h"
#include "plugrad/plugin_api/device.h"
#include "plugrad/plugin_api/graph.h"
#include "plugrad/plugin_api/queue.h"
#include "plugrad/plugin_api/runner.h"
#include "runtime/status.h"

namespace plugrad::runtime {

template <class F>
struct Stub;
template <class... Args>
struct Stub<pgr_status (*)(Args...)> {
  static pgr_status call(Args... args) {
    pgr_error* error = std::get<sizeof...(Args) - 1>(std::tuple(args...));  // the last
    return set_error(error, PGR_STATUS_UNSUPPORTED, "the plugin does not offer this function");
  }
};
template <class... Args>
struct Stub<void (*)(Args...)> {
  static void call(Args...) {}
};

template <class F>
void stub_if_absent(F& slot) {
  if (!slot) slot = &Stub<F>::call;
}

/// Whether the plugin offers the function.
template <class F>
bool offered(F slot) {
  return slot != &Stub<F>::call;
}

/// Copies the fields that both sides know. Returns null, or a reason if `theirs` is no table of
/// this kind.
template <class Table>
const char* copy_table(const void* theirs, std::uint32_t struct_id, Table& out) {
  std::memset(&out, 0, sizeof out);
  if (!theirs) return "the table is NULL";
  if (reinterpret_cast<std::uintptr_t>(theirs) % alignof(void*) != 0)
    return "the table is misaligned";
  pgr_struct_header header;
  std::memcpy(&header, theirs, sizeof header);
  if (header.struct_id != struct_id) return "the table is of another kind";
  if (header.struct_size < sizeof header) return "the table is shorter than its header";
  std::size_t whole_slots = header.struct_size / sizeof(void*) * sizeof(void*);
  std::memcpy(&out, theirs, std::min(whole_slots, sizeof out));
  return nullptr;
}

void fill_stubs(pgr_plugin_api& t);
void fill_stubs(pgr_device_api& t);
void fill_stubs(pgr_allocator_api& t);
void fill_stubs(pgr_renderer_api& t);
void fill_stubs(pgr_compiler_api& t);
void fill_stubs(pgr_runner_api& t);
void fill_stubs(pgr_queue_api& t);
void fill_stubs(pgr_graph_api& t);
void fill_stubs(pgr_profile_api& t);

}  // namespace plugrad::runtime
