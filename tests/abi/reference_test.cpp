// Tests the reference plugin through its C tables: memory, compiling, launching, withdrawn claims.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "abi/plugin_host.h"
#include "plugrad/sdk/ir_builder.h"

namespace plugrad::abi {
namespace {

using sdk::IrBuilder;
using testing::HasSubstr;
constexpr uint32_t F32 = PGR_DTYPE_F32, I32 = PGR_DTYPE_I32;

struct Reference : testing::Test {
  const pgr_plugin_api* plugin =
      open_plugin(std::string(PLUGIN_DIRECTORY) + "/libplugrad_plugin_reference.so");
  const pgr_device_api* devices = query<pgr_device_api>(plugin, "pgr.device");
  const pgr_allocator_api* memory = query<pgr_allocator_api>(plugin, "pgr.allocator");
  const pgr_compiler_api* compiler = query<pgr_compiler_api>(plugin, "pgr.compiler");
  const pgr_runner_api* runner = query<pgr_runner_api>(plugin, "pgr.runner");
  pgr_device* device = nullptr;
  Error error;

  pgr_status open(std::string_view withdraw, std::string_view key = "withdraw") {
    pgr_option option;
    PGR_INIT(option, OPTION);
    option.key = to_pgr(key);
    option.value = to_pgr(withdraw);
    return plugin->device_open(plugin->plugin, 0, &option, withdraw.empty() ? 0 : 1, sizeof option,
                               &device, error.get());
  }
  ~Reference() override { plugin->device_close(plugin->plugin, device); }

  pgr_device_caps caps() {
    pgr_device_caps out;
    PGR_INIT(out, DEVICE_CAPS);
    EXPECT_EQ(devices->caps(device, &out, error.get()), PGR_STATUS_OK);
    return out;
  }
  pgr_status compile(const std::vector<std::byte>& block, pgr_blob* binary) {
    pgr_compile_desc desc;
    PGR_INIT(desc, COMPILE_DESC);
    desc.input = block.data();
    desc.input_bytes = block.size();
    PGR_INIT(*binary, BLOB);
    return compiler->compile(device, &desc, binary, nullptr, error.get());
  }
  pgr_buffer* alloc(uint64_t size, uint32_t flags = 0) {
    pgr_alloc_desc desc;
    PGR_INIT(desc, ALLOC_DESC);
    desc.size_bytes = size;
    desc.flags = flags;
    pgr_buffer* out = nullptr;
    EXPECT_EQ(memory->alloc(device, &desc, &out, error.get()), PGR_STATUS_OK) << error.message();
    return out;
  }
};

// out[g] = exp2(in[g])
std::vector<std::byte> exp2_kernel() {
  IrBuilder b("power");
  b.set_groups(4);
  auto out = b.buffer(F32, 4), in = b.buffer(F32, 4);
  auto g = b.group_id(0);
  b.store(out, g, b.alu(PGR_OP_EXP2, {b.load(in, g)}));
  return b.finish();
}

TEST_F(Reference, RunsAKernelFromBlockToNumbers) {
  ASSERT_EQ(open(""), PGR_STATUS_OK);
  pgr_blob binary;
  ASSERT_EQ(compile(exp2_kernel(), &binary), PGR_STATUS_OK) << error.message();
  pgr_program* program = nullptr;
  ASSERT_EQ(runner->load(device, binary.data, binary.size, &program, error.get()), PGR_STATUS_OK);
  binary.release(&binary);
  pgr_kernel* kernel = nullptr;
  pgr_string name = to_pgr("power");
  ASSERT_EQ(runner->kernel(device, program, &name, &kernel, error.get()), PGR_STATUS_OK);
  pgr_buffer* buffers[] = {alloc(16), alloc(16)};
  const float in[4] = {0, 1, -1, 10};
  ASSERT_EQ(memory->copy_in(device, nullptr, buffers[1], 0, in, 16, error.get()), PGR_STATUS_OK);
  pgr_launch_desc desc;
  PGR_INIT(desc, LAUNCH_DESC);
  desc.buffers = buffers;
  desc.buffer_count = 2;
  desc.group_count[0] = 4;
  desc.group_count[1] = desc.group_count[2] = 1;
  desc.local_size[0] = desc.local_size[1] = desc.local_size[2] = 1;
  ASSERT_EQ(runner->launch(device, nullptr, kernel, &desc, nullptr, error.get()), PGR_STATUS_OK)
      << error.message();
  float out[4];
  ASSERT_EQ(memory->copy_out(device, nullptr, out, buffers[0], 0, 16, error.get()), PGR_STATUS_OK);
  EXPECT_EQ(std::vector(out, out + 4), (std::vector<float>{1, 2, 0.5, 1024}));
  desc.buffer_count = 1;
  EXPECT_EQ(runner->launch(device, nullptr, kernel, &desc, nullptr, error.get()),
            PGR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(error.message(), "kernel power: parameter 1 has no buffer");
  runner->unload(device, program);
  for (pgr_buffer* buffer : buffers) memory->free(device, buffer);
}

TEST_F(Reference, WithdrawnOpIsNeitherClaimedNorCompiled) {
  ASSERT_EQ(open("exp2,Sin"), PGR_STATUS_OK);
  EXPECT_EQ(caps().op_dtypes[PGR_OP_EXP2], 0u);
  EXPECT_EQ(caps().op_dtypes[PGR_OP_SIN], 0u);
  EXPECT_NE(caps().op_dtypes[PGR_OP_LOG2], 0u);
  pgr_blob binary;
  EXPECT_EQ(compile(exp2_kernel(), &binary), PGR_STATUS_UNSUPPORTED);
  EXPECT_EQ(error.message(), "kernel power, instruction 4: EXP2 on f32 is not claimed");
}

TEST_F(Reference, WithdrawnDtypeCanStillBeStored) {
  ASSERT_EQ(open("f16,sqrt:f64,lanes,local"), PGR_STATUS_OK);
  const pgr_device_caps c = caps();
  const uint32_t f16 = 1u << PGR_DTYPE_F16, f64 = 1u << PGR_DTYPE_F64;
  EXPECT_EQ(c.op_dtypes[PGR_OP_ADD] & f16, 0u);
  EXPECT_EQ(c.op_dtypes[PGR_OP_CAST] & f16, 0u);
  EXPECT_NE(c.op_dtypes[PGR_OP_BITCAST] & f16, 0u);
  EXPECT_NE(c.storage_dtypes & f16, 0u);
  EXPECT_EQ(c.op_dtypes[PGR_OP_SQRT] & f64, 0u);
  EXPECT_NE(c.op_dtypes[PGR_OP_ADD] & f64, 0u);
  EXPECT_EQ(c.vector_lanes[F32], 1u);
  EXPECT_EQ(c.has_local, 0u);
}

TEST_F(Reference, CacheIdentityKnowsWhatIsWithdrawn) {
  auto identity = [&] {
    pgr_blob blob;
    PGR_INIT(blob, BLOB);
    EXPECT_EQ(compiler->cache_identity(device, &blob, error.get()), PGR_STATUS_OK);
    std::string text(static_cast<const char*>(blob.data), blob.size);
    blob.release(&blob);
    return text;
  };
  ASSERT_EQ(open(""), PGR_STATUS_OK);
  const std::string full = identity();
  plugin->device_close(plugin->plugin, device);
  ASSERT_EQ(open("exp2"), PGR_STATUS_OK);
  EXPECT_NE(identity(), full);
}

TEST_F(Reference, UnknownOptionsAreRefused) {
  EXPECT_EQ(open("exp3"), PGR_STATUS_INVALID_ARGUMENT);
  EXPECT_THAT(error.message(), HasSubstr("withdraw: \"exp3\" is not an op"));
  EXPECT_EQ(open("1", "speed"), PGR_STATUS_NOT_FOUND);
  EXPECT_THAT(error.message(), HasSubstr("no option \"speed\""));
  EXPECT_EQ(device, nullptr);
}

TEST_F(Reference, DamagedBinariesAreRefused) {
  ASSERT_EQ(open(""), PGR_STATUS_OK);
  auto block = exp2_kernel();
  uint32_t verdict = 99;
  ASSERT_EQ(compiler->validate(device, block.data(), block.size(), &verdict, error.get()),
            PGR_STATUS_OK);
  EXPECT_EQ(verdict, PGR_BINARY_GOOD);
  block[0] = std::byte{0};
  ASSERT_EQ(compiler->validate(device, block.data(), block.size(), &verdict, error.get()),
            PGR_STATUS_OK);
  EXPECT_EQ(verdict, PGR_BINARY_FOREIGN);
  pgr_program* program = nullptr;
  EXPECT_EQ(runner->load(device, block.data(), block.size(), &program, error.get()),
            PGR_STATUS_BAD_BINARY);
}

TEST_F(Reference, RangesAreChecked) {
  ASSERT_EQ(open(""), PGR_STATUS_OK);
  pgr_buffer* buffer = alloc(64, PGR_ALLOC_ZERO);
  char bytes[65] = {};
  EXPECT_EQ(memory->copy_in(device, nullptr, buffer, 0, bytes, 65, error.get()),
            PGR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(error.message(), "dst: 65 bytes at 0 of a buffer of 64");
  EXPECT_EQ(memory->copy_out(device, nullptr, bytes, buffer, UINT64_MAX, 1, error.get()),
            PGR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(memory->copy_out(device, nullptr, bytes, buffer, 64, 0, error.get()), PGR_STATUS_OK);
  memory->free(device, buffer);
}

TEST_F(Reference, SubBufferKeepsItsParentAlive) {
  ASSERT_EQ(open(""), PGR_STATUS_OK);
  pgr_buffer *parent = alloc(256, PGR_ALLOC_ZERO), *part = nullptr;
  ASSERT_EQ(memory->sub_buffer(device, parent, 64, 64, &part, error.get()), PGR_STATUS_OK);
  const uint32_t pattern = 0xabcd;
  ASSERT_EQ(memory->fill(device, nullptr, part, 4, 8, &pattern, 4, error.get()), PGR_STATUS_OK);
  uint32_t seen[4];
  ASSERT_EQ(memory->copy_out(device, nullptr, seen, parent, 64, 16, error.get()), PGR_STATUS_OK);
  EXPECT_EQ(std::vector(seen, seen + 4), (std::vector<uint32_t>{0, 0xabcd, 0xabcd, 0}));
  memory->free(device, parent);
  ASSERT_EQ(memory->copy_out(device, nullptr, seen, part, 0, 16, error.get()), PGR_STATUS_OK);
  EXPECT_EQ(seen[1], 0xabcdu);
  memory->free(device, part);
  pgr_memory_stats stats;
  PGR_INIT(stats, MEMORY_STATS);
  ASSERT_EQ(devices->memory_stats(device, &stats, error.get()), PGR_STATUS_OK);
  EXPECT_EQ(stats.used_bytes, 0u);
}

}  // namespace
}  // namespace plugrad::abi
