// Checks the host's requests and the device's answers: arguments, ranges, lifetimes, launches
// against kernel parameters and device limits, and leaks at the end. Does not pass on invalid
// calls.
#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "base/check.h"
#include "runtime/checks/launch_rules.h"
#include "runtime/checks/layers.h"
#include "runtime/checks/live_handles.h"
#include "runtime/checks/live_objects.h"

namespace plugrad::runtime {
namespace {

class Validate final : public Layer {
 public:
  Validate(const DeviceTables& inner, int frames, const std::string& device_name)
      : Layer("validate", device_name, inner), live_(device_name, frames), caps_(caps_of(inner)) {}

  bool wants_every_free() const override { return true; }

  void closing() override {
    const LiveObjects::Lock guard;
    for (const std::string& leak : live_.leaks())
      report(fmt::format("it is being closed, and not everything is gone: {}", leak));
    for (const LiveHandles* handles : {&queues_, &events_, &graphs_})
      if (const std::string left = handles->left(); !left.empty())
        report(fmt::format("it is being closed, and not everything is gone: {}", left));
  }

  pgr_status synchronize(pgr_error* error) override {
    return answered("synchronize", Layer::synchronize(error), error);
  }

  pgr_status alloc(const pgr_alloc_desc* desc, pgr_buffer** out, pgr_error* error) override;
  void free(pgr_buffer* buffer) override;
  pgr_status copy_in(pgr_queue* queue, pgr_buffer* dst, uint64_t offset, const void* src,
                     uint64_t size, pgr_error* error) override {
    std::string wrong = range_error("dst", dst, offset, size);
    if (wrong.empty() && !src && size > 0) wrong = "src is NULL";
    if (!wrong.empty()) return refuse("copy_in", wrong, error);
    return answered("copy_in", Layer::copy_in(queue, dst, offset, src, size, error), error);
  }
  pgr_status copy_out(pgr_queue* queue, void* dst, pgr_buffer* src, uint64_t offset, uint64_t size,
                      pgr_error* error) override {
    std::string wrong = range_error("src", src, offset, size);
    if (wrong.empty() && !dst && size > 0) wrong = "dst is NULL";
    if (!wrong.empty()) return refuse("copy_out", wrong, error);
    return answered("copy_out", Layer::copy_out(queue, dst, src, offset, size, error), error);
  }
  pgr_status copy(pgr_queue* queue, pgr_buffer* dst, uint64_t dst_offset, pgr_buffer* src,
                  uint64_t src_offset, uint64_t size, pgr_error* error) override;
  pgr_status fill(pgr_queue* queue, pgr_buffer* dst, uint64_t offset, uint64_t size,
                  const void* pattern, uint64_t pattern_bytes, pgr_error* error) override;
  pgr_status map(pgr_buffer* buffer, void** out, pgr_error* error) override;
  pgr_status unmap(pgr_buffer* buffer, pgr_error* error) override;
  pgr_status sub_buffer(pgr_buffer* parent, uint64_t offset, uint64_t size, pgr_buffer** out,
                        pgr_error* error) override;

  pgr_status render(const pgr_render_desc* desc, pgr_blob* out, pgr_error* error) override {
    std::string wrong = struct_error(desc, PGR_STRUCT_RENDER_DESC, sizeof *desc);
    if (wrong.empty() && reinterpret_cast<uintptr_t>(desc->ir) % 8 != 0)
      wrong = "the kernel IR block is not aligned to 8 bytes";
    if (wrong.empty() && !read_kernel_facts(block(desc->ir, desc->ir_bytes)))
      wrong = "what is to be rendered is no kernel IR block";
    if (!wrong.empty()) return refuse("render", wrong, error);
    return gave_bytes("render", Layer::render(desc, out, error), out, error);
  }
  pgr_status compile(const pgr_compile_desc* desc, pgr_blob* binary, pgr_blob* log,
                     pgr_error* error) override {
    std::string wrong = struct_error(desc, PGR_STRUCT_COMPILE_DESC, sizeof *desc);
    if (wrong.empty() && (!desc->input || desc->input_bytes == 0)) wrong = "the input is empty";
    if (wrong.empty() && desc->optimize > 3) wrong = "optimize is above 3";
    if (!wrong.empty()) return refuse("compile", wrong, error);
    return gave_bytes("compile", Layer::compile(desc, binary, log, error), binary, error);
  }

  pgr_status load(const void* binary, uint64_t size, pgr_program** out, pgr_error* error) override;
  pgr_status kernel(pgr_program* program, const pgr_string* name, pgr_kernel** out,
                    pgr_error* error) override;
  pgr_status launch(pgr_queue* queue, pgr_kernel* kernel, const pgr_launch_desc* desc,
                    uint64_t* out_time_ns, pgr_error* error) override;
  void unload(pgr_program* program) override;

  pgr_status queue_create(pgr_queue** out, pgr_error* error) override {
    return made(queues_, "queue.create", Layer::queue_create(out, error), out, error);
  }
  void queue_destroy(pgr_queue* queue) override {
    if (ends(queues_, "queue.destroy", queue)) Layer::queue_destroy(queue);
  }
  pgr_status queue_finish(pgr_queue* queue, pgr_error* error) override {
    if (auto bad = unknown("queue.finish", queue, error)) return bad;
    return answered("queue.finish", Layer::queue_finish(queue, error), error);
  }
  pgr_status record(pgr_queue* queue, pgr_event** out, pgr_error* error) override {
    if (auto bad = unknown("queue.record", queue, error)) return bad;
    return made(events_, "queue.record", Layer::record(queue, out, error), out, error);
  }
  pgr_status queue_wait(pgr_queue* queue, pgr_event* event, pgr_error* error) override {
    if (auto bad = unknown("queue.wait", queue, error)) return bad;
    if (auto bad = dead(events_, "queue.wait", event, error)) return bad;
    return answered("queue.wait", Layer::queue_wait(queue, event, error), error);
  }
  pgr_status event_wait(pgr_event* event, uint64_t timeout_ns, pgr_error* error) override {
    if (auto bad = dead(events_, "event_wait", event, error)) return bad;
    return answered("event_wait", Layer::event_wait(event, timeout_ns, error), error);
  }
  pgr_status event_time(pgr_event* event, uint64_t* out_ns, pgr_error* error) override {
    if (auto bad = dead(events_, "event_time", event, error)) return bad;
    return answered("event_time", Layer::event_time(event, out_ns, error), error);
  }
  void event_destroy(pgr_event* event) override {
    if (ends(events_, "event_destroy", event)) Layer::event_destroy(event);
  }
  pgr_status graph_build(const pgr_graph_node* nodes, uint32_t count, uint32_t stride,
                         pgr_graph** out, pgr_error* error) override {
    return made(graphs_, "graph.build", Layer::graph_build(nodes, count, stride, out, error), out,
                error);
  }
  pgr_status patch_buffer(pgr_graph* graph, uint32_t node, uint32_t slot, pgr_buffer* buffer,
                          pgr_error* error) override {
    if (auto bad = dead(graphs_, "patch_buffer", graph, error)) return bad;
    if (const std::string wrong = range_error("the buffer", buffer, 0, 0); !wrong.empty())
      return refuse("patch_buffer", wrong, error);
    return answered("patch_buffer", Layer::patch_buffer(graph, node, slot, buffer, error), error);
  }
  pgr_status patch_scalar(pgr_graph* graph, uint32_t node, uint32_t slot, uint64_t bits,
                          pgr_error* error) override {
    if (auto bad = dead(graphs_, "patch_scalar", graph, error)) return bad;
    return answered("patch_scalar", Layer::patch_scalar(graph, node, slot, bits, error), error);
  }
  pgr_status replay(pgr_queue* queue, pgr_graph* graph, pgr_error* error) override {
    if (auto bad = unknown("replay", queue, error)) return bad;
    if (auto bad = dead(graphs_, "replay", graph, error)) return bad;
    return answered("replay", Layer::replay(queue, graph, error), error);
  }
  void graph_destroy(pgr_graph* graph) override {
    if (ends(graphs_, "graph.destroy", graph)) Layer::graph_destroy(graph);
  }

 private:
  // NULL means the device's own queue.
  pgr_status unknown(const char* call, pgr_queue* queue, pgr_error* error) {
    return queue ? dead(queues_, call, queue, error) : PGR_STATUS_OK;
  }
  pgr_status dead(const LiveHandles& handles, const char* call, const void* handle,
                  pgr_error* error) {
    const std::string wrong = handles.why_not(handle);
    return wrong.empty() ? PGR_STATUS_OK : refuse(call, wrong, error);
  }
  template <class Handle>
  pgr_status made(LiveHandles& handles, const char* call, pgr_status status, Handle** out,
                  pgr_error* error) {
    if (answered(call, status, error) != PGR_STATUS_OK) return status;
    if (!out || !*out)
      return report(error, PGR_STATUS_INTERNAL, fmt::format("{} answered OK and gave none", call));
    handles.add(*out);
    return status;
  }
  // Whether the plugin should destroy the handle; NULL is allowed.
  bool ends(LiveHandles& handles, const char* call, const void* handle) {
    if (!handle) return true;
    const std::string wrong = handles.why_not(handle);
    if (!wrong.empty()) report(fmt::format("{}: {}", call, wrong));
    return wrong.empty() && handles.remove(handle);
  }

  static std::span<const std::byte> block(const void* data, uint64_t size) {
    return {static_cast<const std::byte*>(data), data ? static_cast<std::size_t>(size) : 0};
  }

  pgr_status refuse(const char* call, const std::string& wrong, pgr_error* error) {
    return report(error, PGR_STATUS_INVALID_ARGUMENT, fmt::format("{}: {}", call, wrong));
  }

  // Reports answers that the ABI does not allow, and returns the status.
  pgr_status answered(const char* call, pgr_status status, const pgr_error* error) {
    if (status < 0 || status >= PGR_STATUS_COUNT)
      report(fmt::format("{} answered {}, which is no status of this ABI", call, status));
    if (error && error->message_size > error->message_capacity)
      report(fmt::format("{} says that its message has {} bytes, in a buffer of {}", call,
                         error->message_size, error->message_capacity));
    return status;
  }
  pgr_status gave_bytes(const char* call, pgr_status status, const pgr_blob* out,
                        const pgr_error* error) {
    if (status == PGR_STATUS_OK && out && out->size > 0 && !out->data)
      report(fmt::format("{} answered OK and {} bytes at NULL", call, out->size));
    return answered(call, status, error);
  }

  static std::string struct_error(const void* pointer, uint32_t id, std::size_t size) {
    if (!pointer) return "the description is NULL";
    const auto* header = static_cast<const pgr_struct_header*>(pointer);
    if (header->struct_id != id || header->struct_size < size)
      return "the description was not made with PGR_INIT";
    return "";
  }

  std::string range_error(const char* what, pgr_buffer* buffer, uint64_t offset, uint64_t size) {
    const LiveObjects::Lock guard;
    const LiveBuffer* found = live_.buffer(buffer);
    if (!found) return fmt::format("{} {}", what, live_.why_not(buffer, "was freed"));
    if (size <= found->size && offset <= found->size - size) return "";
    return fmt::format("{} bytes at {} of {}, {}", size, offset, what,
                       LiveObjects::describe(*found));
  }

  LiveObjects live_;
  LiveHandles queues_{"queue"}, events_{"event"}, graphs_{"graph"};
  const pgr_device_caps caps_;
};

pgr_status Validate::alloc(const pgr_alloc_desc* desc, pgr_buffer** out, pgr_error* error) {
  std::string wrong = struct_error(desc, PGR_STRUCT_ALLOC_DESC, sizeof *desc);
  if (wrong.empty() && !out) wrong = "out is NULL";
  if (wrong.empty() && desc->align_bytes != 0 && !std::has_single_bit(desc->align_bytes))
    wrong = fmt::format("an alignment of {} bytes is no power of two", desc->align_bytes);
  if (!wrong.empty()) return refuse("alloc", wrong, error);
  const pgr_status status = answered("alloc", Layer::alloc(desc, out, error), error);
  if (status != PGR_STATUS_OK) return status;
  if (!*out) return report(error, PGR_STATUS_INTERNAL, "alloc answered OK and gave no buffer");
  const LiveObjects::Lock guard;
  if (const LiveBuffer* twice = live_.buffer(*out))
    return report(error, PGR_STATUS_INTERNAL,
                  "alloc gave a handle that is in use: " + LiveObjects::describe(*twice));
  live_.add_buffer(*out, desc->size_bytes);
  return status;
}

void Validate::free(pgr_buffer* buffer) {
  if (!buffer) return Layer::free(buffer);
  {
    const LiveObjects::Lock guard;
    if (!live_.buffer(buffer))
      return report("free: the buffer " + live_.why_not(buffer, "was freed"));
    live_.remove_buffer(buffer);
  }
  Layer::free(buffer);
}

pgr_status Validate::copy(pgr_queue* queue, pgr_buffer* dst, uint64_t dst_offset, pgr_buffer* src,
                          uint64_t src_offset, uint64_t size, pgr_error* error) {
  std::string wrong = range_error("dst", dst, dst_offset, size);
  if (wrong.empty()) wrong = range_error("src", src, src_offset, size);
  if (wrong.empty()) {
    const LiveObjects::Lock guard;
    const LiveBuffer &to = *live_.buffer(dst), &from = *live_.buffer(src);
    const uint64_t to_begin = to.offset + dst_offset, from_begin = from.offset + src_offset;
    if (to.root == from.root && to_begin < from_begin + size && from_begin < to_begin + size)
      wrong = fmt::format("the {} bytes at {} and at {} of one buffer overlap", size, from_begin,
                          to_begin);
  }
  if (!wrong.empty()) return refuse("copy", wrong, error);
  return answered("copy", Layer::copy(queue, dst, dst_offset, src, src_offset, size, error), error);
}

pgr_status Validate::fill(pgr_queue* queue, pgr_buffer* dst, uint64_t offset, uint64_t size,
                          const void* pattern, uint64_t pattern_bytes, pgr_error* error) {
  std::string wrong = range_error("dst", dst, offset, size);
  if (wrong.empty() && (!std::has_single_bit(pattern_bytes) || pattern_bytes > 8 || !pattern))
    wrong = fmt::format("a pattern of {} bytes; it has 1, 2, 4 or 8", pattern_bytes);
  if (wrong.empty() && size % pattern_bytes != 0)
    wrong = fmt::format("{} bytes are no multiple of a pattern of {}", size, pattern_bytes);
  if (!wrong.empty()) return refuse("fill", wrong, error);
  return answered("fill", Layer::fill(queue, dst, offset, size, pattern, pattern_bytes, error),
                  error);
}

pgr_status Validate::map(pgr_buffer* buffer, void** out, pgr_error* error) {
  std::string wrong = range_error("the buffer", buffer, 0, 0);
  if (wrong.empty() && !out) wrong = "out is NULL";
  if (!wrong.empty()) return refuse("map", wrong, error);
  const pgr_status status = answered("map", Layer::map(buffer, out, error), error);
  if (status != PGR_STATUS_OK) return status;
  const LiveObjects::Lock guard;
  ++live_.buffer(buffer)->maps;
  return status;
}

pgr_status Validate::unmap(pgr_buffer* buffer, pgr_error* error) {
  std::string wrong = range_error("the buffer", buffer, 0, 0);
  if (wrong.empty()) {
    const LiveObjects::Lock guard;
    LiveBuffer& found = *live_.buffer(buffer);
    if (found.maps == 0)
      wrong = LiveObjects::describe(found) + " is not mapped";
    else
      --found.maps;
  }
  if (!wrong.empty()) return refuse("unmap", wrong, error);
  return answered("unmap", Layer::unmap(buffer, error), error);
}

pgr_status Validate::sub_buffer(pgr_buffer* parent, uint64_t offset, uint64_t size,
                                pgr_buffer** out, pgr_error* error) {
  std::string wrong = range_error("the parent", parent, offset, size);
  const uint64_t align = std::max(1u, caps_.buffer_align_bytes);
  if (wrong.empty() && offset % align != 0)
    wrong = fmt::format("an offset of {} is no multiple of buffer_align_bytes, {}", offset, align);
  if (wrong.empty() && !out) wrong = "out is NULL";
  if (!wrong.empty()) return refuse("sub_buffer", wrong, error);
  const pgr_status status =
      answered("sub_buffer", Layer::sub_buffer(parent, offset, size, out, error), error);
  if (status != PGR_STATUS_OK) return status;
  if (!*out) return report(error, PGR_STATUS_INTERNAL, "sub_buffer answered OK and gave no buffer");
  const LiveObjects::Lock guard;
  const LiveBuffer of = *live_.buffer(parent);
  LiveBuffer& part = live_.add_buffer(*out, size);
  part.root = of.root;
  part.offset = of.offset + offset;
  return status;
}

pgr_status Validate::load(const void* binary, uint64_t size, pgr_program** out, pgr_error* error) {
  if (!binary || size == 0 || !out)
    return refuse("load", !out ? "out is NULL" : "the binary is empty", error);
  const pgr_status status = answered("load", Layer::load(binary, size, out, error), error);
  if (status != PGR_STATUS_OK) return status;
  if (!*out) return report(error, PGR_STATUS_INTERNAL, "load answered OK and gave no program");
  const LiveObjects::Lock guard;
  live_.add_program(*out, size);
  return status;
}

pgr_status Validate::kernel(pgr_program* program, const pgr_string* name, pgr_kernel** out,
                            pgr_error* error) {
  {
    const LiveObjects::Lock guard;
    if (!live_.program(program))
      return refuse("kernel", "the program " + live_.why_not(program, "was unloaded"), error);
  }
  if (!name || !name->data || !out) return refuse("kernel", "name or out is NULL", error);
  const pgr_status status = answered("kernel", Layer::kernel(program, name, out, error), error);
  if (status != PGR_STATUS_OK) return status;
  if (!*out) return report(error, PGR_STATUS_INTERNAL, "kernel answered OK and gave no kernel");
  const LiveObjects::Lock guard;
  LiveKernel& found = live_.add_kernel(*out, program);
  found.name = std::string(view(*name));
  found.facts = read_kernel_facts(KernelIrScope::current());
  if (found.facts && found.facts->name != found.name) found.facts.reset();
  LiveProgram& of = *live_.program(program);
  if (of.kernel_name.empty()) of.kernel_name = found.name;
  return status;
}

pgr_status Validate::launch(pgr_queue* queue, pgr_kernel* kernel, const pgr_launch_desc* desc,
                            uint64_t* out_time_ns, pgr_error* error) {
  std::string wrong = struct_error(desc, PGR_STRUCT_LAUNCH_DESC, sizeof *desc);
  if (wrong.empty()) {
    const LiveObjects::Lock guard;
    const LiveKernel* found = live_.kernel(kernel);
    wrong = found ? launch_error(live_, *found, *desc, caps_)
                  : "the kernel " + live_.why_not(kernel, "was unloaded");
    if (found && !wrong.empty()) wrong = found->name + ": " + wrong;
    for (uint32_t i = 0; wrong.empty() && i < desc->buffer_count; ++i) {
      LiveBuffer& used = *live_.buffer(desc->buffers[i]);
      used.last_kernel = found->name;
      live_.buffer(used.root)->last_kernel = found->name;
    }
  }
  if (!wrong.empty()) return refuse("launch", wrong, error);
  return answered("launch", Layer::launch(queue, kernel, desc, out_time_ns, error), error);
}

void Validate::unload(pgr_program* program) {
  if (!program) return Layer::unload(program);
  {
    const LiveObjects::Lock guard;
    if (!live_.program(program))
      return report("unload: the program " + live_.why_not(program, "was unloaded"));
    live_.remove_program(program);
  }
  Layer::unload(program);
}

}  // namespace

std::unique_ptr<Layer> make_validate_layer(const DeviceTables& inner, const LayerChoice& choice,
                                           const std::string& device_name) {
  const auto frames = choice.values.find("backtrace");
  const int count = frames == choice.values.end() ? 0 : std::stoi(frames->second);
  return std::make_unique<Validate>(inner, count, device_name);
}

}  // namespace plugrad::runtime
