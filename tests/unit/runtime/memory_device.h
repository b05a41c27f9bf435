// A device of host memory as tables in this process, for tests of layers: every call is well
// behaved, and the test defines the effect of a launch.
#pragma once

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "runtime/checks/layers.h"

namespace plugrad::runtime {

class MemoryDevice {
 public:
  using Bytes = std::vector<unsigned char*>;
  std::function<void(const Bytes& buffers)> on_launch = [](const Bytes&) {};
  int allocated = 0, loaded = 0, freed_twice = 0, calls = 0;

  DeviceTables tables() {
    DeviceTables t;
    PGR_INIT(t.device, DEVICE_API);
    PGR_INIT(t.allocator_api, ALLOCATOR_API);
    PGR_INIT(t.runner, RUNNER_API);
    t.handle = t.renderer_handle = reinterpret_cast<pgr_device*>(this);
    t.device.caps = caps;
    fill_allocator(t.allocator_api);
    fill_runner(t.runner);
    fill_stubs(t.device);
    fill_stubs(t.allocator_api);
    fill_stubs(t.renderer);
    fill_stubs(t.compiler);
    fill_stubs(t.runner);
    fill_stubs(t.queue);
    fill_stubs(t.graph);
    fill_stubs(t.profile);
    return t;
  }

 private:
  struct Buffer {
    unsigned char* data;
    uint64_t size;
    Buffer* parent;
  };
  static MemoryDevice& of(pgr_device* device) { return *reinterpret_cast<MemoryDevice*>(device); }
  static Buffer& of(pgr_buffer* buffer) { return *reinterpret_cast<Buffer*>(buffer); }
  static pgr_buffer* handle(Buffer* buffer) { return reinterpret_cast<pgr_buffer*>(buffer); }

  static pgr_status caps(pgr_device*, pgr_device_caps* out, pgr_error*) {
    out->buffer_align_bytes = 64;
    out->max_local_size[0] = out->max_local_size[1] = out->max_local_size[2] = 8;
    out->max_local_total = 16;
    return PGR_STATUS_OK;
  }

  static void fill_allocator(pgr_allocator_api& t) {
    t.alloc = [](pgr_device* d, const pgr_alloc_desc* desc, pgr_buffer** out, pgr_error*) {
      ++of(d).allocated;
      void* data = std::calloc(1, desc->size_bytes + 1);
      *out = handle(new Buffer{static_cast<unsigned char*>(data), desc->size_bytes, nullptr});
      return PGR_STATUS_OK + 0;
    };
    t.free = [](pgr_device* d, pgr_buffer* buffer) {
      if (!buffer) return;
      if (!of(buffer).parent) {
        --of(d).allocated;
        std::free(of(buffer).data);
      }
      delete &of(buffer);
    };
    t.copy_in = [](pgr_device* d, pgr_queue*, pgr_buffer* dst, uint64_t offset, const void* src,
                   uint64_t size, pgr_error*) {
      ++of(d).calls;
      std::memcpy(of(dst).data + offset, src, size);
      return PGR_STATUS_OK + 0;
    };
    t.copy_out = [](pgr_device* d, pgr_queue*, void* dst, pgr_buffer* src, uint64_t offset,
                    uint64_t size, pgr_error*) {
      ++of(d).calls;
      std::memcpy(dst, of(src).data + offset, size);
      return PGR_STATUS_OK + 0;
    };
    t.copy = [](pgr_device* d, pgr_queue*, pgr_buffer* dst, uint64_t dst_offset, pgr_buffer* src,
                uint64_t src_offset, uint64_t size, pgr_error*) {
      ++of(d).calls;
      std::memmove(of(dst).data + dst_offset, of(src).data + src_offset, size);
      return PGR_STATUS_OK + 0;
    };
    t.map = [](pgr_device*, pgr_buffer* buffer, void** out, pgr_error*) {
      *out = of(buffer).data;
      return PGR_STATUS_OK + 0;
    };
    t.unmap = [](pgr_device*, pgr_buffer*, pgr_error*) { return PGR_STATUS_OK + 0; };
    t.sub_buffer = [](pgr_device*, pgr_buffer* parent, uint64_t offset, uint64_t size,
                      pgr_buffer** out, pgr_error*) {
      *out = handle(new Buffer{of(parent).data + offset, size, &of(parent)});
      return PGR_STATUS_OK + 0;
    };
  }

  static void fill_runner(pgr_runner_api& t) {
    t.load = [](pgr_device* d, const void*, uint64_t, pgr_program** out, pgr_error*) {
      ++of(d).loaded;
      *out = reinterpret_cast<pgr_program*>(new std::string);
      return PGR_STATUS_OK + 0;
    };
    t.kernel = [](pgr_device*, pgr_program* program, const pgr_string*, pgr_kernel** out,
                  pgr_error*) {
      *out = reinterpret_cast<pgr_kernel*>(reinterpret_cast<std::string*>(program)->data());
      return PGR_STATUS_OK + 0;
    };
    t.launch = [](pgr_device* d, pgr_queue*, pgr_kernel*, const pgr_launch_desc* desc, uint64_t*,
                  pgr_error*) {
      ++of(d).calls;
      Bytes buffers;
      for (uint32_t i = 0; i < desc->buffer_count; ++i)
        buffers.push_back(of(desc->buffers[i]).data);
      of(d).on_launch(buffers);
      return PGR_STATUS_OK + 0;
    };
    t.unload = [](pgr_device* d, pgr_program* program) {
      if (!program) return;
      --of(d).loaded;
      delete reinterpret_cast<std::string*>(program);
    };
  }
};

/// A device behind layers, called as a host calls it.
class LayeredDevice {
 public:
  LayeredDevice(MemoryDevice& device, const std::string& layers,
                const std::string& name = "MEMORY:0")
      : tables(device.tables()), stack(wrap(tables, parse_layers(layers), "MEMORY", name)) {}

  pgr_buffer* alloc(uint64_t size) {
    pgr_alloc_desc desc;
    PGR_INIT(desc, ALLOC_DESC);
    desc.size_bytes = size;
    pgr_buffer* out = nullptr;
    status = tables.allocator_api.alloc(tables.handle, &desc, &out, error.get());
    return out;
  }
  pgr_buffer* part(pgr_buffer* parent, uint64_t offset, uint64_t size) {
    pgr_buffer* out = nullptr;
    status =
        tables.allocator_api.sub_buffer(tables.handle, parent, offset, size, &out, error.get());
    return out;
  }
  void free(pgr_buffer* buffer) { tables.allocator_api.free(tables.handle, buffer); }
  std::string read(pgr_buffer* buffer, uint64_t offset, uint64_t size) {
    std::string out(size, '?');
    return said(tables.allocator_api.copy_out(tables.handle, nullptr, out.data(), buffer, offset,
                                              size, error.get()));
  }
  std::string write(pgr_buffer* buffer, uint64_t offset, const void* src, uint64_t size) {
    return said(tables.allocator_api.copy_in(tables.handle, nullptr, buffer, offset, src, size,
                                             error.get()));
  }
  pgr_kernel* kernel(const std::string& name, std::span<const std::byte> ir = {}) {
    const KernelIrScope scope(ir);
    status = tables.runner.load(tables.handle, "binary", 6, &program, error.get());
    pgr_kernel* out = nullptr;
    const pgr_string text = c_string(name);
    if (status == PGR_STATUS_OK)
      status = tables.runner.kernel(tables.handle, program, &text, &out, error.get());
    return out;
  }
  void unload() { tables.runner.unload(tables.handle, program); }
  pgr_launch_desc launch_of(const std::vector<pgr_buffer*>& buffers) const {
    pgr_launch_desc desc;
    PGR_INIT(desc, LAUNCH_DESC);
    desc.buffers = buffers.data();
    desc.buffer_count = static_cast<uint32_t>(buffers.size());
    for (int axis = 0; axis < 3; ++axis) desc.group_count[axis] = desc.local_size[axis] = 1;
    return desc;
  }
  std::string launch(pgr_kernel* which, const pgr_launch_desc& desc) {
    return said(tables.runner.launch(tables.handle, nullptr, which, &desc, nullptr, error.get()));
  }
  std::string synchronize() { return said(tables.device.synchronize(tables.handle, error.get())); }
  /// The findings of the layers, outermost layer last; the findings are not cleared.
  std::vector<std::string> findings() const {
    std::vector<std::string> out;
    for (const auto& layer : stack)
      for (std::string& finding : layer->findings()) out.push_back(std::move(finding));
    return out;
  }
  void close() {
    for (auto layer = stack.rbegin(); layer != stack.rend(); ++layer) (*layer)->closing();
  }
  /// "" for OK, else the message.
  std::string said(pgr_status s) {
    status = s;
    return s == PGR_STATUS_OK ? "" : error.message();
  }

  DeviceTables tables;
  LayerStack stack;
  CallError error;
  pgr_status status = PGR_STATUS_OK;
  pgr_program* program = nullptr;
};

}  // namespace plugrad::runtime
