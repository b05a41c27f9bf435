#include "runtime/checks/layer.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/trace/json_line.h"
#include "base/trace/trace.h"

namespace plugrad::runtime {
namespace {

// A C function for a table slot: calls `method` of the Layer whose address is the device handle.
template <auto method>
struct Enter;
template <class R, class... Args, R (Layer::*method)(Args...)>
struct Enter<method> {
  static R call(pgr_device* device, Args... args) {
    return (reinterpret_cast<Layer*>(device)->*method)(args...);
  }
};

template <auto method, class Slot>
void lead_through(Slot& slot) {
  if (offered(slot)) slot = &Enter<method>::call;
}

}  // namespace

Layer::Layer(std::string name, std::string device_name, const DeviceTables& inner)
    : name_(std::move(name)), device_name_(std::move(device_name)), inner_(inner) {}

namespace {

void lead_to_queues(DeviceTables& t) {
  lead_through<&Layer::queue_create>(t.queue.create);
  lead_through<&Layer::queue_finish>(t.queue.finish);
  lead_through<&Layer::record>(t.queue.record);
  lead_through<&Layer::queue_wait>(t.queue.wait);
  lead_through<&Layer::event_wait>(t.queue.event_wait);
  lead_through<&Layer::event_time>(t.queue.event_time);
  lead_through<&Layer::graph_build>(t.graph.build);
  lead_through<&Layer::patch_buffer>(t.graph.patch_buffer);
  lead_through<&Layer::patch_scalar>(t.graph.patch_scalar);
  lead_through<&Layer::replay>(t.graph.replay);
  lead_through<&Layer::calibrate>(t.profile.calibrate);
  lead_through<&Layer::counter>(t.profile.counter);
  lead_through<&Layer::queue_destroy>(t.queue.destroy);
  lead_through<&Layer::event_destroy>(t.queue.event_destroy);
  lead_through<&Layer::graph_destroy>(t.graph.destroy);
}

}  // namespace

DeviceTables Layer::outer() {
  DeviceTables t = inner_;
  t.handle = t.renderer_handle = reinterpret_cast<pgr_device*>(this);
  lead_through<&Layer::info>(t.device.info);
  lead_through<&Layer::caps>(t.device.caps);
  lead_through<&Layer::memory_stats>(t.device.memory_stats);
  lead_through<&Layer::health>(t.device.health);
  t.device.synchronize = &Enter<&Layer::synchronize>::call;  // layers check at this call
  lead_through<&Layer::alloc>(t.allocator_api.alloc);
  lead_through<&Layer::free>(t.allocator_api.free);
  lead_through<&Layer::copy_in>(t.allocator_api.copy_in);
  lead_through<&Layer::copy_out>(t.allocator_api.copy_out);
  lead_through<&Layer::copy>(t.allocator_api.copy);
  lead_through<&Layer::fill>(t.allocator_api.fill);
  lead_through<&Layer::map>(t.allocator_api.map);
  lead_through<&Layer::unmap>(t.allocator_api.unmap);
  lead_through<&Layer::sub_buffer>(t.allocator_api.sub_buffer);
  lead_through<&Layer::render>(t.renderer.render);
  lead_through<&Layer::compile>(t.compiler.compile);
  lead_through<&Layer::cache_identity>(t.compiler.cache_identity);
  lead_through<&Layer::validate>(t.compiler.validate);
  lead_through<&Layer::disassemble>(t.compiler.disassemble);
  lead_through<&Layer::load>(t.runner.load);
  lead_through<&Layer::kernel>(t.runner.kernel);
  lead_through<&Layer::limits>(t.runner.limits);
  lead_through<&Layer::launch>(t.runner.launch);
  lead_through<&Layer::unload>(t.runner.unload);
  lead_to_queues(t);
  return t;
}

std::vector<std::string> Layer::findings() const {
  std::lock_guard lock(findings_mutex_);
  return findings_;
}

void Layer::report(const std::string& what, std::string_view kernel, std::string_view difference) {
  log_line(LogLevel::Error, name_ + ": " + device_name_ + ": " + what);
  if (tracing()) {
    trace::JsonLine line("finding");
    line.add("id", trace::new_id()).add("time_ns", trace::elapsed_ns()).add("layer", name_);
    line.add("device", device_name_).add("kernel", kernel).add("text", what);
    if (!difference.empty()) line.add_raw("difference", difference);
    trace::define(line.str());
  }
  std::lock_guard lock(findings_mutex_);
  findings_.push_back(what);
}

pgr_status Layer::report(pgr_error* error, pgr_status status, const std::string& what) {
  report(what);
  return set_error(error, status, name_ + ": " + what);
}

pgr_status Layer::info(pgr_device_info* out, pgr_error* error) {
  return inner_.device.info(inner_.handle, out, error);
}
pgr_status Layer::caps(pgr_device_caps* out, pgr_error* error) {
  return inner_.device.caps(inner_.handle, out, error);
}
pgr_status Layer::memory_stats(pgr_memory_stats* out, pgr_error* error) {
  return inner_.device.memory_stats(inner_.handle, out, error);
}
pgr_status Layer::health(uint32_t* out, pgr_error* error) {
  return inner_.device.health(inner_.handle, out, error);
}
pgr_status Layer::synchronize(pgr_error* error) {
  if (!offered(inner_.device.synchronize)) return PGR_STATUS_OK;  // everything has finished
  return inner_.device.synchronize(inner_.handle, error);
}

pgr_status Layer::alloc(const pgr_alloc_desc* desc, pgr_buffer** out, pgr_error* error) {
  return inner_.allocator_api.alloc(inner_.handle, desc, out, error);
}
void Layer::free(pgr_buffer* buffer) {
  inner_.allocator_api.free(inner_.handle, buffer);
}
pgr_status Layer::copy_in(pgr_queue* queue, pgr_buffer* dst, uint64_t offset, const void* src,
                          uint64_t size, pgr_error* error) {
  return inner_.allocator_api.copy_in(inner_.handle, queue, dst, offset, src, size, error);
}
pgr_status Layer::copy_out(pgr_queue* queue, void* dst, pgr_buffer* src, uint64_t offset,
                           uint64_t size, pgr_error* error) {
  return inner_.allocator_api.copy_out(inner_.handle, queue, dst, src, offset, size, error);
}
pgr_status Layer::copy(pgr_queue* queue, pgr_buffer* dst, uint64_t dst_offset, pgr_buffer* src,
                       uint64_t src_offset, uint64_t size, pgr_error* error) {
  return inner_.allocator_api.copy(inner_.handle, queue, dst, dst_offset, src, src_offset, size,
                                   error);
}
pgr_status Layer::fill(pgr_queue* queue, pgr_buffer* dst, uint64_t offset, uint64_t size,
                       const void* pattern, uint64_t pattern_bytes, pgr_error* error) {
  return inner_.allocator_api.fill(inner_.handle, queue, dst, offset, size, pattern, pattern_bytes,
                                   error);
}
pgr_status Layer::map(pgr_buffer* buffer, void** out, pgr_error* error) {
  return inner_.allocator_api.map(inner_.handle, buffer, out, error);
}
pgr_status Layer::unmap(pgr_buffer* buffer, pgr_error* error) {
  return inner_.allocator_api.unmap(inner_.handle, buffer, error);
}
pgr_status Layer::sub_buffer(pgr_buffer* parent, uint64_t offset, uint64_t size, pgr_buffer** out,
                             pgr_error* error) {
  return inner_.allocator_api.sub_buffer(inner_.handle, parent, offset, size, out, error);
}

pgr_status Layer::render(const pgr_render_desc* desc, pgr_blob* out, pgr_error* error) {
  return inner_.renderer.render(inner_.renderer_handle, desc, out, error);
}

pgr_status Layer::compile(const pgr_compile_desc* desc, pgr_blob* binary, pgr_blob* log,
                          pgr_error* error) {
  return inner_.compiler.compile(inner_.handle, desc, binary, log, error);
}
pgr_status Layer::cache_identity(pgr_blob* out, pgr_error* error) {
  return inner_.compiler.cache_identity(inner_.handle, out, error);
}
pgr_status Layer::validate(const void* binary, uint64_t size, uint32_t* out, pgr_error* error) {
  return inner_.compiler.validate(inner_.handle, binary, size, out, error);
}
pgr_status Layer::disassemble(const void* binary, uint64_t size, pgr_blob* out, pgr_error* error) {
  return inner_.compiler.disassemble(inner_.handle, binary, size, out, error);
}

pgr_status Layer::load(const void* binary, uint64_t size, pgr_program** out, pgr_error* error) {
  return inner_.runner.load(inner_.handle, binary, size, out, error);
}
pgr_status Layer::kernel(pgr_program* program, const pgr_string* name, pgr_kernel** out,
                         pgr_error* error) {
  return inner_.runner.kernel(inner_.handle, program, name, out, error);
}
pgr_status Layer::limits(pgr_kernel* kernel, pgr_kernel_limits* out, pgr_error* error) {
  return inner_.runner.limits(inner_.handle, kernel, out, error);
}
pgr_status Layer::launch(pgr_queue* queue, pgr_kernel* kernel, const pgr_launch_desc* desc,
                         uint64_t* out_time_ns, pgr_error* error) {
  return inner_.runner.launch(inner_.handle, queue, kernel, desc, out_time_ns, error);
}
void Layer::unload(pgr_program* program) {
  inner_.runner.unload(inner_.handle, program);
}

pgr_status Layer::queue_create(pgr_queue** out, pgr_error* error) {
  return inner_.queue.create(inner_.handle, out, error);
}
pgr_status Layer::queue_finish(pgr_queue* queue, pgr_error* error) {
  return inner_.queue.finish(inner_.handle, queue, error);
}
pgr_status Layer::record(pgr_queue* queue, pgr_event** out, pgr_error* error) {
  return inner_.queue.record(inner_.handle, queue, out, error);
}
pgr_status Layer::queue_wait(pgr_queue* queue, pgr_event* event, pgr_error* error) {
  return inner_.queue.wait(inner_.handle, queue, event, error);
}
pgr_status Layer::event_wait(pgr_event* event, uint64_t timeout_ns, pgr_error* error) {
  return inner_.queue.event_wait(inner_.handle, event, timeout_ns, error);
}
pgr_status Layer::event_time(pgr_event* event, uint64_t* out_ns, pgr_error* error) {
  return inner_.queue.event_time(inner_.handle, event, out_ns, error);
}
pgr_status Layer::graph_build(const pgr_graph_node* nodes, uint32_t count, uint32_t stride,
                              pgr_graph** out, pgr_error* error) {
  return inner_.graph.build(inner_.handle, nodes, count, stride, out, error);
}
pgr_status Layer::patch_buffer(pgr_graph* graph, uint32_t node, uint32_t slot, pgr_buffer* buffer,
                               pgr_error* error) {
  return inner_.graph.patch_buffer(inner_.handle, graph, node, slot, buffer, error);
}
pgr_status Layer::patch_scalar(pgr_graph* graph, uint32_t node, uint32_t slot, uint64_t bits,
                               pgr_error* error) {
  return inner_.graph.patch_scalar(inner_.handle, graph, node, slot, bits, error);
}
pgr_status Layer::replay(pgr_queue* queue, pgr_graph* graph, pgr_error* error) {
  return inner_.graph.replay(inner_.handle, queue, graph, error);
}
pgr_status Layer::calibrate(uint64_t* device_ns, uint64_t* host_ns, uint64_t* error_ns,
                            pgr_error* error) {
  return inner_.profile.calibrate(inner_.handle, device_ns, host_ns, error_ns, error);
}
pgr_status Layer::counter(uint32_t index, pgr_counter* out, pgr_error* error) {
  return inner_.profile.counter(inner_.handle, index, out, error);
}
void Layer::queue_destroy(pgr_queue* queue) {
  inner_.queue.destroy(inner_.handle, queue);
}
void Layer::event_destroy(pgr_event* event) {
  inner_.queue.event_destroy(inner_.handle, event);
}
void Layer::graph_destroy(pgr_graph* graph) {
  inner_.graph.destroy(inner_.handle, graph);
}

pgr_device_caps caps_of(const DeviceTables& tables) {
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  CallError error;
  std::string escaped;
  const pgr_status status = guarded(
      error, escaped, [&](pgr_error* e) { return tables.device.caps(tables.handle, &caps, e); });
  if (status != PGR_STATUS_OK) PGR_INIT(caps, DEVICE_CAPS);
  return caps;
}

std::string named(const char* kind, uint64_t number, uint64_t size_bytes) {
  return fmt::format("{} {} ({} bytes)", kind, number, size_bytes);
}

}  // namespace plugrad::runtime
