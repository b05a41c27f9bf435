// Opens the CUDA plugin for a test: calls its entry directly, with the double as its driver.
#pragma once

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "plugrad/plugin_api/graph.h"
#include "plugrad/plugin_api/queue.h"
#include "plugrad/sdk/ir_builder.h"
#include "unit/cpu_clang/stub_host.h"

namespace plugrad::testing {

// Controls and queries of the double.
struct Double {
  Double() {
    void* library = open_library(CUDA_DOUBLE);
    fail = reinterpret_cast<decltype(fail)>(::dlsym(library, "cuda_double_fail"));
    fail_work = reinterpret_cast<decltype(fail_work)>(::dlsym(library, "cuda_double_fail_work"));
    take_violations =
        reinterpret_cast<decltype(take_violations)>(::dlsym(library, "cuda_double_violations"));
    live = reinterpret_cast<decltype(live)>(::dlsym(library, "cuda_double_live"));
  }
  void (*fail)(const char* function, int nth, int result);
  void (*fail_work)(int result);
  const char* (*take_violations)();
  int (*live)(const char* kind);
};

class CudaPlugin {
 public:
  explicit CudaPlugin(const std::string& driver = CUDA_DOUBLE) : host_(PLUGRAD_LIBRARY_DIR) {
    const auto entry = reinterpret_cast<pgr_plugin_entry_fn>(
        ::dlsym(open_library(CUDA_PLUGIN), PGR_PLUGIN_ENTRY_NAME));
    pgr_option options[2];
    for (pgr_option& option : options) PGR_INIT(option, OPTION);
    options[0].key = sdk::to_pgr("driver");
    options[0].value = sdk::to_pgr(driver);
    options[1].key = sdk::to_pgr("compiler");
    options[1].value = sdk::to_pgr("clang");
    pgr_hello hello;
    PGR_INIT(hello, HELLO);
    hello.host = &host_.api;
    hello.options = options;
    hello.option_count = 2;
    hello.option_stride = sizeof options[0];
    if (entry(&hello, &api, &error.error) != PGR_STATUS_OK) throw std::runtime_error(error.text());
  }
  template <typename Table>
  const Table& table(const char* name) {
    const pgr_string text = sdk::to_pgr(name);
    const void* found = nullptr;
    if (api->query_interface(api->plugin, &text, PGR_API_MINOR, &found, &error.error) !=
        PGR_STATUS_OK)
      throw std::runtime_error(error.text());
    return *static_cast<const Table*>(found);
  }
  const pgr_plugin_api* api = nullptr;
  ErrorText error;

 private:
  StubHost host_;
};

class CudaDevice : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(open(), PGR_STATUS_OK) << error_.text(); }
  void TearDown() override {
    close();
    EXPECT_STREQ(double_.take_violations(), "");
    for (const char* kind :
         {"stream", "event", "module", "graph", "graph exec", "allocation", "pinned"})
      EXPECT_EQ(double_.live(kind), 0) << kind;
  }
  pgr_status open() {
    return plugin_.api->device_open(plugin_.api->plugin, 0, nullptr, 0, sizeof(pgr_option),
                                    &device_, &error_.error);
  }
  void close() {
    plugin_.api->device_close(plugin_.api->plugin, device_);
    device_ = nullptr;
  }

  pgr_buffer* alloc(uint64_t size) {
    pgr_buffer* buffer = nullptr;
    EXPECT_EQ(try_alloc(size, &buffer), PGR_STATUS_OK) << error_.text();
    return buffer;
  }
  pgr_status try_alloc(uint64_t size, pgr_buffer** out) {
    pgr_alloc_desc desc;
    PGR_INIT(desc, ALLOC_DESC);
    desc.size_bytes = size;
    return memory_.alloc(device_, &desc, out, &error_.error);
  }
  pgr_status write(pgr_buffer* buffer, const std::vector<int32_t>& values,
                   pgr_queue* queue = nullptr) {
    return memory_.copy_in(device_, queue, buffer, 0, values.data(), values.size() * 4,
                           &error_.error);
  }
  pgr_status read(pgr_buffer* buffer, std::vector<int32_t>& values, pgr_queue* queue = nullptr) {
    return memory_.copy_out(device_, queue, values.data(), buffer, 0, values.size() * 4,
                            &error_.error);
  }

  // data[i] += 1 for each of the groups.
  struct Loaded {
    pgr_program* program = nullptr;
    pgr_kernel* kernel = nullptr;
  };
  Loaded load_increment() {
    sdk::IrBuilder b("increment");
    b.set_groups(64);
    const auto data = b.buffer(PGR_DTYPE_I32, 64);
    const auto at = b.group_id(0), one = b.constant_int(PGR_DTYPE_I32, 1);
    b.store(data, at, b.alu(PGR_OP_ADD, {b.load(data, at), one}));
    const std::vector<std::byte> ir = b.finish();
    pgr_render_desc render;
    PGR_INIT(render, RENDER_DESC);
    render.ir = ir.data();
    render.ir_bytes = ir.size();
    pgr_blob source, binary;
    PGR_INIT(source, BLOB);
    PGR_INIT(binary, BLOB);
    EXPECT_EQ(renderer_.render(device_, &render, &source, &error_.error), PGR_STATUS_OK)
        << error_.text();
    const std::string text = take(source);
    pgr_compile_desc compile;
    PGR_INIT(compile, COMPILE_DESC);
    compile.input = text.data();
    compile.input_bytes = text.size();
    compile.name = sdk::to_pgr("increment");
    compile.optimize = 2;
    EXPECT_EQ(compiler_.compile(device_, &compile, &binary, nullptr, &error_.error), PGR_STATUS_OK)
        << error_.text();
    binary_ = take(binary);
    Loaded loaded;
    const pgr_string name = sdk::to_pgr("increment");
    EXPECT_EQ(runner_.load(device_, binary_.data(), binary_.size(), &loaded.program, &error_.error),
              PGR_STATUS_OK)
        << error_.text();
    EXPECT_EQ(runner_.kernel(device_, loaded.program, &name, &loaded.kernel, &error_.error),
              PGR_STATUS_OK);
    return loaded;
  }
  pgr_launch_desc launch_desc(pgr_buffer* const* buffer, uint64_t groups = 64) {
    pgr_launch_desc desc;
    PGR_INIT(desc, LAUNCH_DESC);
    desc.buffers = buffer;
    desc.buffer_count = 1;
    desc.group_count[0] = groups;
    desc.group_count[1] = desc.group_count[2] = 1;
    for (uint32_t& size : desc.local_size) size = 1;
    return desc;
  }
  pgr_status launch(const Loaded& loaded, pgr_buffer* buffer, uint64_t groups = 64,
                    pgr_queue* queue = nullptr) {
    const pgr_launch_desc desc = launch_desc(&buffer, groups);
    return runner_.launch(device_, queue, loaded.kernel, &desc, nullptr, &error_.error);
  }

  CudaPlugin plugin_;
  Double double_;
  ErrorText error_;
  std::string binary_;
  pgr_device* device_ = nullptr;
  const pgr_device_api& devices_ = plugin_.table<pgr_device_api>("pgr.device");
  const pgr_allocator_api& memory_ = plugin_.table<pgr_allocator_api>("pgr.allocator");
  const pgr_renderer_api& renderer_ = plugin_.table<pgr_renderer_api>("pgr.renderer");
  const pgr_compiler_api& compiler_ = plugin_.table<pgr_compiler_api>("pgr.compiler");
  const pgr_runner_api& runner_ = plugin_.table<pgr_runner_api>("pgr.runner");
  const pgr_queue_api& queues_ = plugin_.table<pgr_queue_api>("pgr.queue");
  const pgr_graph_api& graphs_ = plugin_.table<pgr_graph_api>("pgr.graph");
};

}  // namespace plugrad::testing
