// The opened CPU plugin, with vectors in and out, for the tests of its kernels.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>

#include "plugrad/plugin_api/device.h"
#include "plugrad/sdk/ir_builder.h"
#include "unit/cpu_clang/stub_host.h"

namespace plugrad::testing {

class CpuDevice {
 public:
  explicit CpuDevice(const char* isa = "native") : host(PLUGRAD_LIBRARY_DIR) {
    const auto entry = reinterpret_cast<pgr_plugin_entry_fn>(
        ::dlsym(open_library(PLUGRAD_CPU_PLUGIN), PGR_PLUGIN_ENTRY_NAME));
    pgr_hello hello;
    PGR_INIT(hello, HELLO);
    hello.host = &host.api;
    check(entry(&hello, &plugin, &error.error));
    pgr_option option;
    PGR_INIT(option, OPTION);
    option.key = sdk::to_pgr("isa");
    option.value = sdk::to_pgr(isa);
    check(plugin->device_open(plugin->plugin, 0, &option, 1, sizeof option, &device, &error.error));
    device_api = table<pgr_device_api>("pgr.device");
    allocator = table<pgr_allocator_api>("pgr.allocator");
    renderer = table<pgr_renderer_api>("pgr.renderer");
    compiler = table<pgr_compiler_api>("pgr.compiler");
    runner = table<pgr_runner_api>("pgr.runner");
  }
  ~CpuDevice() { plugin->device_close(plugin->plugin, device); }

  void check(pgr_status status) const {
    if (status != PGR_STATUS_OK) throw std::runtime_error(error.text());
  }
  template <typename Table>
  const Table* table(const char* name) {
    const pgr_string text = sdk::to_pgr(name);
    const void* out = nullptr;
    check(plugin->query_interface(plugin->plugin, &text, PGR_API_MINOR, &out, &error.error));
    return static_cast<const Table*>(out);
  }

  pgr_device_caps caps() {
    pgr_device_caps caps;
    PGR_INIT(caps, DEVICE_CAPS);
    check(device_api->caps(device, &caps, &error.error));
    return caps;
  }
  std::string render(const std::vector<std::byte>& block) {
    pgr_render_desc desc;
    PGR_INIT(desc, RENDER_DESC);
    desc.ir = block.data();
    desc.ir_bytes = block.size();
    pgr_blob source;
    PGR_INIT(source, BLOB);
    check(renderer->render(device, &desc, &source, &error.error));
    return take(source);
  }
  pgr_status try_compile(const std::string& source, bool contract, std::string& binary,
                         std::string& log) {
    pgr_compile_desc desc;
    PGR_INIT(desc, COMPILE_DESC);
    desc.input = source.data();
    desc.input_bytes = source.size();
    desc.name = sdk::to_pgr("test");
    desc.contract = contract ? PGR_CONTRACT_ALLOWED : PGR_CONTRACT_OFF;
    desc.optimize = 2;
    pgr_blob out, out_log;
    PGR_INIT(out, BLOB);
    PGR_INIT(out_log, BLOB);
    const pgr_status status = compiler->compile(device, &desc, &out, &out_log, &error.error);
    if (out.data) binary = take(out);
    if (out_log.data) log = take(out_log);
    return status;
  }
  std::string compile(const std::string& source, bool contract = false) {
    std::string binary, log;
    check(try_compile(source, contract, binary, log));
    return binary;
  }
  std::string disassemble(const std::string& binary) {
    pgr_blob text;
    PGR_INIT(text, BLOB);
    check(compiler->disassemble(device, binary.data(), binary.size(), &text, &error.error));
    return take(text);
  }

  StubHost host;
  mutable ErrorText error;
  const pgr_plugin_api* plugin = nullptr;
  pgr_device* device = nullptr;
  const pgr_device_api* device_api = nullptr;
  const pgr_allocator_api* allocator = nullptr;
  const pgr_renderer_api* renderer = nullptr;
  const pgr_compiler_api* compiler = nullptr;
  const pgr_runner_api* runner = nullptr;
};

// Device memory that starts as `values` and can be read back.
template <typename T>
class Buffer {
 public:
  Buffer(CpuDevice& cpu, const std::vector<T>& values) : cpu_(cpu), count_(values.size()) {
    pgr_alloc_desc desc;
    PGR_INIT(desc, ALLOC_DESC);
    desc.size_bytes = count_ * sizeof(T);
    cpu.check(cpu.allocator->alloc(cpu.device, &desc, &handle, &cpu.error.error));
    cpu.check(cpu.allocator->copy_in(cpu.device, nullptr, handle, 0, values.data(), desc.size_bytes,
                                     &cpu.error.error));
  }
  ~Buffer() { cpu_.allocator->free(cpu_.device, handle); }
  std::vector<T> values() const {
    std::vector<T> out(count_);
    cpu_.check(cpu_.allocator->copy_out(cpu_.device, nullptr, out.data(), handle, 0,
                                        count_ * sizeof(T), &cpu_.error.error));
    return out;
  }
  pgr_buffer* handle = nullptr;

 private:
  CpuDevice& cpu_;
  size_t count_;
};

// A kernel that is ready to run.
class Program {
 public:
  Program(CpuDevice& cpu, const std::string& binary, const std::string& name) : cpu_(cpu) {
    cpu.check(
        cpu.runner->load(cpu.device, binary.data(), binary.size(), &program_, &cpu.error.error));
    const pgr_string text = sdk::to_pgr(name);
    cpu.check(cpu.runner->kernel(cpu.device, program_, &text, &kernel_, &cpu.error.error));
  }
  Program(CpuDevice& cpu, const sdk::IrBuilder& builder, const std::string& name,
          bool contract = false)
      : Program(cpu, cpu.compile(cpu.render(builder.finish()), contract), name) {}
  ~Program() { cpu_.runner->unload(cpu_.device, program_); }
  Program(const Program&) = delete;

  uint64_t run(const std::vector<pgr_buffer*>& buffers, const std::vector<uint64_t>& scalars = {},
               uint64_t x = 1, uint64_t y = 1, uint64_t z = 1) {
    pgr_launch_desc desc;
    PGR_INIT(desc, LAUNCH_DESC);
    desc.buffers = buffers.data();
    desc.buffer_count = static_cast<uint32_t>(buffers.size());
    desc.scalars = scalars.data();
    desc.scalar_count = static_cast<uint32_t>(scalars.size());
    desc.group_count[0] = x;
    desc.group_count[1] = y;
    desc.group_count[2] = z;
    for (uint32_t& size : desc.local_size) size = 1;
    desc.timing = 1;
    uint64_t time_ns = 0;
    cpu_.check(
        cpu_.runner->launch(cpu_.device, nullptr, kernel_, &desc, &time_ns, &cpu_.error.error));
    return time_ns;
  }

 private:
  CpuDevice& cpu_;
  pgr_program* program_ = nullptr;
  pgr_kernel* kernel_ = nullptr;
};

}  // namespace plugrad::testing
