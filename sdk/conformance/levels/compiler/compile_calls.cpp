#include "conformance/levels/compiler/compile_calls.h"

#include <memory>
#include <thread>

#include "plugrad/sdk/ir_builder.h"

namespace plugrad::conformance {

using sdk::IrBuilder;

const pgr_renderer_api& renderer_of(Context& context) {
  const pgr_renderer_api* renderer = context.plugin().renderer_api();
  if (!renderer) throw Unsupported("the plugin has no renderer");
  return *renderer;
}

const pgr_compiler_api& compiler_of(Context& context) {
  const pgr_compiler_api* compiler = context.plugin().compiler_api();
  if (!compiler) throw Unsupported("the plugin has no compiler");
  return *compiler;
}

std::string render(const pgr_renderer_api& renderer, pgr_device* device, const Bytes& block) {
  pgr_render_desc desc;
  PGR_INIT(desc, RENDER_DESC);
  desc.ir = block.data();
  desc.ir_bytes = block.size();
  desc.option_stride = sizeof(pgr_option);
  Blob source;
  expect_ok("renderer.render",
            [&](pgr_error* error) { return renderer.render(device, &desc, source.get(), error); });
  return source.text();
}

std::string input_of(Context& context, const Bytes& block) {
  if (const pgr_renderer_api* renderer = context.plugin().renderer_api())
    return render(*renderer, context.device().handle(), block);
  return {reinterpret_cast<const char*>(block.data()), block.size()};
}

Compiled try_compile(const pgr_compiler_api& compiler, pgr_device* device, const std::string& input,
                     uint32_t optimize) {
  pgr_compile_desc desc;
  PGR_INIT(desc, COMPILE_DESC);
  desc.input = input.data();
  desc.input_bytes = input.size();
  desc.name = sdk::to_pgr("conformance");
  desc.option_stride = sizeof(pgr_option);
  desc.optimize = optimize;
  Blob binary, log;
  CallError error;
  const pgr_status status = compiler.compile(device, &desc, binary.get(), log.get(), error.get());
  return {status, binary.text(), log.text(), error.message()};
}

std::string compile(const pgr_compiler_api& compiler, pgr_device* device, const std::string& input,
                    uint32_t optimize) {
  const Compiled compiled = try_compile(compiler, device, input, optimize);
  expect(compiled.status == PGR_STATUS_OK, "compiler.compile answered " +
                                               status_name(compiled.status) + ": " +
                                               compiled.message + "\n" + compiled.log);
  return compiled.binary;
}

Bytes scaled_kernel(int64_t factor, const std::string& name) {
  IrBuilder b(name);
  auto value = b.buffer(PGR_DTYPE_I32, 1);
  auto zero = b.constant_int(PGR_DTYPE_I32, 0);
  auto product = b.alu(PGR_OP_MUL, {b.load(value, zero), b.constant_int(PGR_DTYPE_I32, factor)});
  b.store(value, zero, b.alu(PGR_OP_ADD, {product, b.constant_int(PGR_DTYPE_I32, 1)}));
  return b.finish();
}

int32_t run_binary(Device& device, const std::string& binary, int32_t value,
                   std::string_view name) {
  const pgr_runner_api& runner = *device.plugin().runner_api();
  const Tables t(device);
  pgr_program* program = nullptr;
  expect_ok("runner.load", [&](pgr_error* error) {
    return runner.load(device.handle(), binary.data(), binary.size(), &program, error);
  });
  const std::shared_ptr<void> unloads(nullptr,
                                      [&](void*) { runner.unload(device.handle(), program); });
  pgr_kernel* kernel = nullptr;
  const pgr_string text = sdk::to_pgr(name);
  expect_ok("runner.kernel", [&](pgr_error* error) {
    return runner.kernel(device.handle(), program, &text, &kernel, error);
  });
  Buffer buffer = make_ints(device, std::vector<int32_t>{value});
  pgr_buffer* buffers[] = {buffer.handle()};
  pgr_launch_desc desc;
  PGR_INIT(desc, LAUNCH_DESC);
  desc.buffers = buffers;
  desc.buffer_count = 1;
  for (int axis = 0; axis < 3; ++axis) desc.group_count[axis] = desc.local_size[axis] = 1;
  expect_ok("runner.launch", [&](pgr_error* error) {
    return runner.launch(device.handle(), nullptr, kernel, &desc, nullptr, error);
  });
  return read_ints(buffer)[0];
}

void expect_scaled(Device& device, const std::string& binary, int32_t factor,
                   const std::string& what) {
  const int32_t found = run_binary(device, binary, 1000);
  expect(found == 1000 * factor + 1,
         what + " gives " + std::to_string(found) + ", not " + std::to_string(1000 * factor + 1));
}

std::vector<Bytes> several_blocks() {
  return {spread_kernel(10), spread_kernel(3, 5, 7), slow_kernel(), scaled_kernel(7)};
}

void on_threads(int count, const std::function<void(int)>& run) {
  std::vector<std::string> failures(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      try {
        run(i);
      } catch (const std::exception& error) {
        failures[static_cast<size_t>(i)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) expect(failure.empty(), failure);
}

}  // namespace plugrad::conformance
