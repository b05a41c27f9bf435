// A wrapper around a device, between the host and the tables of the plugin or of another layer.
// Functions that a layer does not override pass through.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/device_tables.h"

namespace plugrad::runtime {

class Layer {
 public:
  /// `name`: of the layer, e.g. "validate"; `device_name`: of the device, for messages.
  Layer(std::string name, std::string device_name, const DeviceTables& inner);
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  /// The tables through which callers use the device. Functions absent below are absent here.
  DeviceTables outer();
  /// Called before the device closes, when everything made of it should be destroyed.
  virtual void closing() {}
  /// Whether a call that its caller abandoned is still running: the device and the layers below
  /// must then never be destroyed.
  virtual bool is_hung() const { return false; }
  /// Whether buffers must be freed immediately, with their exact sizes, instead of kept for reuse.
  virtual bool wants_every_free() const { return false; }
  /// Whether the layer must see every launch, so that the host replays no graphs.
  virtual bool wants_every_launch() const { return false; }

  /// The problems found so far, oldest first. Each was also logged as an error.
  std::vector<std::string> findings() const;

  // The functions of the tables, in order.
  virtual pgr_status info(pgr_device_info* out, pgr_error* error);
  virtual pgr_status caps(pgr_device_caps* out, pgr_error* error);
  virtual pgr_status memory_stats(pgr_memory_stats* out, pgr_error* error);
  virtual pgr_status health(uint32_t* out, pgr_error* error);
  virtual pgr_status synchronize(pgr_error* error);

  virtual pgr_status alloc(const pgr_alloc_desc* desc, pgr_buffer** out, pgr_error* error);
  virtual void free(pgr_buffer* buffer);
  virtual pgr_status copy_in(pgr_queue* queue, pgr_buffer* dst, uint64_t offset, const void* src,
                             uint64_t size, pgr_error* error);
  virtual pgr_status copy_out(pgr_queue* queue, void* dst, pgr_buffer* src, uint64_t offset,
                              uint64_t size, pgr_error* error);
  virtual pgr_status copy(pgr_queue* queue, pgr_buffer* dst, uint64_t dst_offset, pgr_buffer* src,
                          uint64_t src_offset, uint64_t size, pgr_error* error);
  virtual pgr_status fill(pgr_queue* queue, pgr_buffer* dst, uint64_t offset, uint64_t size,
                          const void* pattern, uint64_t pattern_bytes, pgr_error* error);
  virtual pgr_status map(pgr_buffer* buffer, void** out, pgr_error* error);
  virtual pgr_status unmap(pgr_buffer* buffer, pgr_error* error);
  virtual pgr_status sub_buffer(pgr_buffer* parent, uint64_t offset, uint64_t size,
                                pgr_buffer** out, pgr_error* error);

  virtual pgr_status render(const pgr_render_desc* desc, pgr_blob* out, pgr_error* error);

  virtual pgr_status compile(const pgr_compile_desc* desc, pgr_blob* binary, pgr_blob* log,
                             pgr_error* error);
  virtual pgr_status cache_identity(pgr_blob* out, pgr_error* error);
  virtual pgr_status validate(const void* binary, uint64_t size, uint32_t* out, pgr_error* error);
  virtual pgr_status disassemble(const void* binary, uint64_t size, pgr_blob* out,
                                 pgr_error* error);

  virtual pgr_status load(const void* binary, uint64_t size, pgr_program** out, pgr_error* error);
  virtual pgr_status kernel(pgr_program* program, const pgr_string* name, pgr_kernel** out,
                            pgr_error* error);
  virtual pgr_status limits(pgr_kernel* kernel, pgr_kernel_limits* out, pgr_error* error);
  virtual pgr_status launch(pgr_queue* queue, pgr_kernel* kernel, const pgr_launch_desc* desc,
                            uint64_t* out_time_ns, pgr_error* error);
  virtual void unload(pgr_program* program);

  virtual pgr_status queue_create(pgr_queue** out, pgr_error* error);
  virtual pgr_status queue_finish(pgr_queue* queue, pgr_error* error);
  virtual pgr_status record(pgr_queue* queue, pgr_event** out, pgr_error* error);
  virtual pgr_status queue_wait(pgr_queue* queue, pgr_event* event, pgr_error* error);
  virtual pgr_status event_wait(pgr_event* event, uint64_t timeout_ns, pgr_error* error);
  virtual pgr_status event_time(pgr_event* event, uint64_t* out_ns, pgr_error* error);
  virtual pgr_status graph_build(const pgr_graph_node* nodes, uint32_t count, uint32_t stride,
                                 pgr_graph** out, pgr_error* error);
  virtual pgr_status patch_buffer(pgr_graph* graph, uint32_t node, uint32_t slot,
                                  pgr_buffer* buffer, pgr_error* error);
  virtual pgr_status patch_scalar(pgr_graph* graph, uint32_t node, uint32_t slot, uint64_t bits,
                                  pgr_error* error);
  virtual pgr_status replay(pgr_queue* queue, pgr_graph* graph, pgr_error* error);
  virtual pgr_status calibrate(uint64_t* device_ns, uint64_t* host_ns, uint64_t* error_ns,
                               pgr_error* error);
  virtual pgr_status counter(uint32_t index, pgr_counter* out, pgr_error* error);
  virtual void queue_destroy(pgr_queue* queue);
  virtual void event_destroy(pgr_event* event);
  virtual void graph_destroy(pgr_graph* graph);

 protected:
  /// Records the problem, in the trace too, and logs it as "LAYER: DEVICE: what". `kernel`: its
  /// name if it is at fault; `difference`: facts for the trace as a JSON object.
  void report(const std::string& what, std::string_view kernel = {},
              std::string_view difference = {});
  /// The same, and returns it as the call's failure.
  pgr_status report(pgr_error* error, pgr_status status, const std::string& what);

  const std::string name_, device_name_;
  const DeviceTables inner_;

 private:
  mutable std::mutex findings_mutex_;
  std::vector<std::string> findings_;
};

/// The device's capabilities; all 0 if it reports none.
pgr_device_caps caps_of(const DeviceTables& tables);

/// E.g. "buffer 12 (1024 bytes)".
std::string named(const char* kind, uint64_t number, uint64_t size_bytes);

}  // namespace plugrad::runtime
