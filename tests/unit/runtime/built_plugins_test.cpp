// Real plugins of this build through the runtime: kernel IR in, numbers out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "base/settings.h"
#include "base/thread_pool.h"
#include "plugrad/error.h"
#include "plugrad/sdk/ir_builder.h"
#include "runtime/runtime.h"
#include "unit/base/temporary_directory.h"

using namespace plugrad;
using namespace plugrad::runtime;
using sdk::IrBuilder;

namespace {

// out[i] = a[i] + b[i] * s for each of 64 elements, one group an element.
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

INSTANTIATE_TEST_SUITE_P(Plugins, BuiltPlugin, testing::Values(PLUGRAD_BUILT_DEVICES),
                         [](const auto& tested) { return std::string(tested.param); });
