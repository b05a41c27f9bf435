#include "runtime/device/tables.h"

namespace plugrad::runtime {
namespace {

template <class... Slots>
void fill(Slots&... slots) {
  (stub_if_absent(slots), ...);
}

}  // namespace

void fill_stubs(pgr_plugin_api& t) {
  fill(t.info, t.device_count, t.device_open, t.device_close, t.query_interface, t.shutdown);
}
void fill_stubs(pgr_device_api& t) {
  fill(t.info, t.caps, t.memory_stats, t.health, t.synchronize);
}
void fill_stubs(pgr_allocator_api& t) {
  fill(t.alloc, t.free, t.copy_in, t.copy_out, t.copy, t.fill, t.map, t.unmap, t.sub_buffer);
}
void fill_stubs(pgr_renderer_api& t) {
  fill(t.render);
}
void fill_stubs(pgr_compiler_api& t) {
  fill(t.compile, t.cache_identity, t.validate, t.disassemble);
}
void fill_stubs(pgr_runner_api& t) {
  fill(t.load, t.kernel, t.limits, t.launch, t.unload);
}
void fill_stubs(pgr_queue_api& t) {
  fill(t.create, t.destroy, t.finish, t.record, t.wait, t.event_wait, t.event_time,
       t.event_destroy);
}
void fill_stubs(pgr_graph_api& t) {
  fill(t.build, t.patch_buffer, t.patch_scalar, t.replay, t.destroy);
}
void fill_stubs(pgr_profile_api& t) {
  fill(t.calibrate, t.counter);
}

}  // namespace plugrad::runtime
