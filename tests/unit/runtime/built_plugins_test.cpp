// The plugins of this build through the runtime: kernel IR in, numbers out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "base/settings.h"
#include "base/thread_pool.h"
#include "plugrad/error.h"
#include "plugrad/sdk/ir_builder.h"
#include "runtime/device/device_state.h"
#include "runtime/runtime.h"
#include "unit/base/temporary_directory.h"

using namespace plugrad;
using namespace plugrad::runtime;
using sdk::IrBuilder;

namespace {

// out[i] = a[i] + b[i] * s for each of 64 elements, one group per element.
std::vector<std::byte> multiply_add(const std::string& name) {
  IrBuilder b(name);
  b.set_groups(64);
  auto out = b.buffer(PGR_DTYPE_F32, 64, PGR_PARAM_WRITE);
  auto x = b.buffer(PGR_DTYPE_F32, 64, PGR_PARAM_READ);
  auto y = b.buffer(PGR_DTYPE_F32, 64, PGR_PARAM_READ);
  auto s = b.scalar(PGR_DTYPE_I32, 0, 100);
  auto i = b.group_id(0);
  auto scaled = b.alu(PGR_OP_MUL, {b.load(y, i), b.cast(s, PGR_DTYPE_F32)});
  b.store(out, i, b.alu(PGR_OP_ADD, {b.load(x, i), scaled}));
  return b.finish();
}

class BuiltPlugin : public testing::TestWithParam<const char*> {
 protected:
  Device& device() { return registry.find_device(GetParam()); }
  TemporaryDirectory cache;
  SettingScope scope{[this](Settings& s) { s.cache_dir = cache.path(); }};
  Registry registry{options_from_settings()};
};

}  // namespace

TEST_P(BuiltPlugin, AKernelRuns) {
  auto kernel = device().compile(multiply_add("axpy"), "axpy");
  std::array<float, 64> x, y, got;
  for (int i = 0; i < 64; ++i) {
    x[i] = static_cast<float>(i);
    y[i] = static_cast<float>(100 * i);
  }
  auto a = device().allocate(sizeof x), b = device().allocate(sizeof y),
       out = device().allocate(sizeof x);
  a->copy_in(x.data(), sizeof x);
  b->copy_in(y.data(), sizeof y);
  Buffer* buffers[] = {out.get(), a.get(), b.get()};
  std::uint64_t scalars[] = {3};
  device().launch(*kernel, {.buffers = buffers, .scalars = scalars, .group_count = {64, 1, 1}});
  device().synchronize();
  out->copy_out(got.data(), sizeof got);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(got[i], x[i] + 3 * y[i]) << i;
}

TEST_P(BuiltPlugin, KernelsCompileInParallelAndComeFromDiskNextTime) {
  run_tasks(6, [&](std::uint64_t i) {
    std::string name = "k" + std::to_string(i % 3);
    device().compile(multiply_add(name), name);
  });
  EXPECT_EQ(device().compile_stats().compiled, 3u);
  Registry next(options_from_settings());
  Device& again = next.find_device(GetParam());
  auto kernel = again.compile(multiply_add("k0"), "k0");
  bool has_compiler = testing::Value(std::vector(again.claims().begin(), again.claims().end()),
                                     testing::Contains("pgr.compiler"));
  EXPECT_EQ(kernel->from_disk_cache(), has_compiler);
  EXPECT_EQ(kernel->disassemble().empty(), !has_compiler);
}

TEST_P(BuiltPlugin, ALaunchBeyondALimitIsToldWithItsSizesAndTheLimits) {
  auto kernel = device().compile(multiply_add("large"), "large");
  auto buffer = device().allocate(256);
  Buffer* buffers[] = {buffer.get(), buffer.get(), buffer.get()};
  const std::uint64_t scalars[] = {3};
  try {
    device().launch(*kernel, {.buffers = buffers,
                              .scalars = scalars,
                              .group_count = {64, 1, 1},
                              .local_size = {1u << 20, 1, 1}});
    ADD_FAILURE() << "it was launched";
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_THAT(said, testing::HasSubstr("[launch large] " + device().name()));
    if (said.find("LIMIT_EXCEEDED") != said.npos) {
      EXPECT_THAT(said, testing::HasSubstr("64 x 1 x 1 groups of 1048576 x 1 x 1 work-items"));
    }
  }
}

// Queues, events and graphs through all layers at once: valid calls pass, invalid ones are
// reported.
TEST_P(BuiltPlugin, QueuesAndGraphsWorkBehindLayers) {
  RegistryOptions options = options_from_settings();
  options.layers = "validate,redzone,faults:synchronize=2@TIMED_OUT";
  Registry layered(std::move(options));
  DeviceState& d = layered.find_device(GetParam()).state();
  if (!d.is_asynchronous || !d.has_graph) GTEST_SKIP() << "without queues or graphs";
  auto kernel = layered.find_device(GetParam()).compile(multiply_add("queued"), "queued");
  std::array<float, 64> ones;
  ones.fill(1);
  std::vector<std::shared_ptr<Buffer>> owned;
  std::vector<pgr_buffer*> handles;
  for (int i = 0; i < 3; ++i) {
    owned.push_back(layered.find_device(GetParam()).allocate(sizeof ones));
    owned.back()->copy_in(ones.data(), sizeof ones);
    handles.push_back(owned.back()->handle());
  }
  const std::uint64_t scalar = 3;
  pgr_launch_desc launch;
  PGR_INIT(launch, LAUNCH_DESC);
  launch.buffers = handles.data();
  launch.buffer_count = 3;
  launch.scalars = &scalar;
  launch.scalar_count = 1;
  launch.group_count[0] = 64;
  launch.group_count[1] = launch.group_count[2] = 1;
  for (auto& size : launch.local_size) size = 1;
  pgr_graph_node node;
  PGR_INIT(node, GRAPH_NODE);
  node.kind = PGR_GRAPH_LAUNCH;
  node.kernel = kernel->handle();
  node.launch = &launch;

  pgr_graph* graph = nullptr;
  pgr_event* event = nullptr;
  ASSERT_EQ(d.graph.build(d.handle, &node, 1, sizeof node, &graph, nullptr), PGR_STATUS_OK);
  EXPECT_EQ(d.graph.patch_scalar(d.handle, graph, 0, 0, 5, nullptr), PGR_STATUS_OK);
  EXPECT_EQ(d.graph.replay(d.handle, nullptr, graph, nullptr), PGR_STATUS_OK);
  ASSERT_EQ(d.queue.record(d.handle, nullptr, &event, nullptr), PGR_STATUS_OK);
  EXPECT_EQ(d.queue.event_wait(d.handle, event, UINT64_MAX, nullptr), PGR_STATUS_OK);
  EXPECT_EQ(d.queue.event_wait(d.handle, event, UINT64_MAX, nullptr), PGR_STATUS_TIMED_OUT);
  std::array<float, 64> got;
  owned[0]->copy_out(got.data(), sizeof got);
  EXPECT_EQ(got[63], 6.0f);

  d.queue.event_destroy(d.handle, event);
  EXPECT_EQ(d.queue.event_wait(d.handle, event, 0, nullptr), PGR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(d.graph.patch_buffer(d.handle, graph, 0, 0, nullptr, nullptr),
            PGR_STATUS_INVALID_ARGUMENT);
  EXPECT_THAT(d.layers.back()->findings(),
              testing::ElementsAre("event_wait: the event was destroyed already",
                                   "patch_buffer: the buffer is NULL"));
  owned.clear();
  kernel.reset();
  d.shut_down();
  EXPECT_THAT(d.layers.back()->findings(),
              testing::Contains("it is being closed, and not everything is gone: 1 graph"));
}

INSTANTIATE_TEST_SUITE_P(Plugins, BuiltPlugin, testing::Values(PLUGRAD_BUILT_DEVICES),
                         [](const auto& tested) { return std::string(tested.param); });

// Ties to even, denormals, infinities and every kind of NaN; vectors of part of a register, of one
// and of two.
TEST(CpuCode, VectorsAreRoundedToBf16) {
  TemporaryDirectory cache;
  const SettingScope scope([&](Settings& s) { s.cache_dir = cache.path(); });
  Registry registry(options_from_settings());
  Device& cpu = registry.find_device("CPU");
  const std::array<std::uint32_t, 16> given = {0x3f800000, 0x3f808000, 0x3f818000, 0x3f808001,
                                               0x00000001, 0x00008000, 0x00008001, 0x007fffff,
                                               0x80018000, 0x7f7fffff, 0x7f800000, 0xff800000,
                                               0x7fffffff, 0x7f800001, 0xff812345, 0x80000000};
  const std::array<std::uint16_t, 16> want = {0x3f80, 0x3f80, 0x3f82, 0x3f81, 0x0000, 0x0000,
                                              0x0001, 0x0080, 0x8002, 0x7f80, 0x7f80, 0xff80,
                                              0x7fff, 0x7fc0, 0xffc1, 0x8000};
  for (const std::uint32_t lanes : {8u, 16u, 32u}) {
    IrBuilder b("round");
    auto in = b.buffer(PGR_DTYPE_F32, 32), out = b.buffer(PGR_DTYPE_BF16, 32);
    for (std::uint32_t at = 0; at < 32; at += lanes) {
      auto first = b.constant_int(PGR_DTYPE_I32, at);
      b.store(out, first, b.cast(b.load(in, first, lanes), PGR_DTYPE_BF16));
    }
    auto kernel = cpu.compile(b.finish(), "round");
    auto from = cpu.allocate(2 * sizeof given), to = cpu.allocate(2 * sizeof want);
    for (const std::size_t half : {0u, 1u})
      from->copy_in(given.data(), sizeof given, half * sizeof given);
    Buffer* buffers[] = {from.get(), to.get()};
    cpu.launch(*kernel, {.buffers = buffers, .scalars = {}});
    for (const std::size_t half : {0u, 1u}) {
      std::array<std::uint16_t, 16> got{};
      to->copy_out(got.data(), sizeof got, half * sizeof got);
      EXPECT_EQ(got, want) << lanes << " lanes, half " << half;
    }
  }
}

// LLVM narrows comparisons of floats cast from halves to comparisons of halves, which processors
// without AVX512-FP16 lack: these would be done lane by lane.
TEST(CpuCode, VectorsOfHalvesAreComparedWhole) {
  TemporaryDirectory cache;
  const SettingScope scope([&](Settings& s) { s.cache_dir = cache.path(); });
  Registry registry(options_from_settings());
  Device& cpu = registry.find_device("CPU");
  if (!(cpu.caps().op_dtypes[PGR_OP_CAST] >> PGR_DTYPE_F16 & 1)) GTEST_SKIP() << "no F16C";
  IrBuilder b("relu");
  auto in = b.buffer(PGR_DTYPE_F16, 8), out = b.buffer(PGR_DTYPE_F16, 8);
  auto first = b.constant_int(PGR_DTYPE_I32, 0);
  auto x = b.load(in, first, 8), zero = b.splat(b.constant_float(PGR_DTYPE_F32, 0), 8);
  auto is_below = b.alu(PGR_OP_CMPLT, {b.cast(x, PGR_DTYPE_F32), zero});
  b.store(out, first,
          b.alu(PGR_OP_WHERE, {is_below, b.splat(b.constant_float(PGR_DTYPE_F16, 0), 8), x}));
  auto kernel = cpu.compile(b.finish(), "relu");
  EXPECT_EQ(kernel->disassemble().find("ucomiss"), std::string::npos) << kernel->disassemble();
  const std::array<std::uint16_t, 8> given = {0x3c00, 0xbc00, 0x8001, 0x7c00,
                                              0xfc00, 0x0001, 0x8000, 0xc900};
  const std::array<std::uint16_t, 8> want = {0x3c00, 0, 0, 0x7c00, 0, 0x0001, 0x8000, 0};
  auto from = cpu.allocate(sizeof given), to = cpu.allocate(sizeof given);
  from->copy_in(given.data(), sizeof given);
  Buffer* buffers[] = {from.get(), to.get()};
  cpu.launch(*kernel, {.buffers = buffers, .scalars = {}});
  std::array<std::uint16_t, 8> got{};
  to->copy_out(got.data(), sizeof got);
  EXPECT_EQ(got, want);
}
