// The plugin's own functions: its properties, its memory, its components.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "unit/cpu_clang/cpu_device.h"

namespace plugrad::testing {
namespace {

using ::testing::HasSubstr;

pgr_buffer* allocate(CpuDevice& cpu, uint64_t size, uint64_t align = 0, uint32_t flags = 0) {
  pgr_alloc_desc desc;
  PGR_INIT(desc, ALLOC_DESC);
  desc.size_bytes = size;
  desc.align_bytes = align;
  desc.flags = flags;
  pgr_buffer* buffer = nullptr;
  cpu.check(cpu.allocator->alloc(cpu.device, &desc, &buffer, &cpu.error.error));
  return buffer;
}

uint64_t used_bytes(CpuDevice& cpu) {
  pgr_memory_stats stats;
  PGR_INIT(stats, MEMORY_STATS);
  cpu.check(cpu.device_api->memory_stats(cpu.device, &stats, &cpu.error.error));
  return stats.used_bytes;
}

TEST(CpuPlugin, Caps_AreThisMachines) {
  CpuDevice cpu;
  const pgr_device_caps caps = cpu.caps();
  EXPECT_EQ(caps.threads, 2u);
  EXPECT_GE(caps.vector_lanes[PGR_DTYPE_F32], 4u);
  EXPECT_EQ(caps.vector_lanes[PGR_DTYPE_F32], 2 * caps.vector_lanes[PGR_DTYPE_F64]);
  EXPECT_EQ(caps.op_dtypes[PGR_OP_EXP2], 0u);
  EXPECT_TRUE(caps.op_dtypes[PGR_OP_ADD] & (1u << PGR_DTYPE_F32));
  __builtin_cpu_init();
  EXPECT_EQ((caps.op_dtypes[PGR_OP_ADD] >> PGR_DTYPE_F16 & 1) != 0,
            __builtin_cpu_supports("avx512fp16") != 0);
  EXPECT_FALSE(CpuDevice("x86-64").caps().op_dtypes[PGR_OP_ADD] & (1u << PGR_DTYPE_F16));
  EXPECT_FALSE(caps.op_dtypes[PGR_OP_ADD] & (1u << PGR_DTYPE_BF16));
  EXPECT_TRUE(caps.storage_dtypes & (1u << PGR_DTYPE_BF16));
  EXPECT_EQ(CpuDevice("x86-64").caps().vector_lanes[PGR_DTYPE_F32], 4u);
}

TEST(CpuPlugin, UnknownIsa_IsRefusedWithTheChoices) {
  try {
    CpuDevice cpu("avx3");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("native|x86-64-v4|x86-64-v3|x86-64-v2|x86-64"));
  }
}

TEST(CpuPlugin, CompiledKernelsOfTwoIsas_AreNotMixedUp) {
  std::set<std::string> identities;
  for (const char* isa : {"x86-64", "x86-64-v2", "x86-64-v3"}) {
    CpuDevice cpu(isa);
    pgr_blob identity;
    PGR_INIT(identity, BLOB);
    cpu.check(cpu.compiler->cache_identity(cpu.device, &identity, &cpu.error.error));
    EXPECT_TRUE(identities.insert(take(identity)).second) << isa;
    pgr_device_info info;
    PGR_INIT(info, DEVICE_INFO);
    cpu.check(cpu.device_api->info(cpu.device, &info, &cpu.error.error));
    EXPECT_EQ(std::string(info.arch.data, info.arch.size), isa);
  }
}

TEST(CpuPlugin, CompilerIsOpened_OnlyByCompile) {
  CpuDevice cpu;
  pgr_blob identity;
  PGR_INIT(identity, BLOB);
  cpu.check(cpu.compiler->cache_identity(cpu.device, &identity, &cpu.error.error));
  EXPECT_THAT(take(identity), HasSubstr("features"));
  EXPECT_EQ(cpu.host.components_opened, 0);
  cpu.compile("void k(void) {}");
  cpu.compile("void j(void) {}");
  EXPECT_EQ(cpu.host.components_opened, 1);
}

TEST(CpuMemory, SmallAndHugeAllocations_AreAlignedAndCounted) {
  CpuDevice cpu;
  for (uint64_t size : {uint64_t{0}, uint64_t{1}, uint64_t{1000}, uint64_t{5} << 20}) {
    pgr_buffer* buffer = allocate(cpu, size, 0, PGR_ALLOC_ZERO);
    void* address = nullptr;
    cpu.check(cpu.allocator->map(cpu.device, buffer, &address, &cpu.error.error));
    const uint64_t align = size > (1u << 20) ? 2u << 20 : 64;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(address) % align, 0u);
    EXPECT_EQ(used_bytes(cpu), size);
    const char* bytes = static_cast<const char*>(address);
    EXPECT_TRUE(std::all_of(bytes, bytes + size, [](char byte) { return byte == 0; }));
    cpu.allocator->free(cpu.device, buffer);
  }
  EXPECT_EQ(used_bytes(cpu), 0u);
  cpu.allocator->free(cpu.device, nullptr);
}

TEST(CpuMemory, MoreThanThereIs_IsOutOfMemory) {
  CpuDevice cpu;
  EXPECT_THROW(allocate(cpu, uint64_t{1} << 60), std::runtime_error);
  EXPECT_EQ(cpu.error.error.code, PGR_STATUS_OUT_OF_MEMORY);
  EXPECT_THAT(cpu.error.text(), HasSubstr("1152921504606846976 bytes"));
  EXPECT_EQ(used_bytes(cpu), 0u);
}

TEST(CpuMemory, CopyPastTheEnd_IsRefused) {
  CpuDevice cpu;
  pgr_buffer* buffer = allocate(cpu, 100);
  char bytes[64] = {};
  EXPECT_EQ(cpu.allocator->copy_in(cpu.device, nullptr, buffer, 50, bytes, 51, &cpu.error.error),
            PGR_STATUS_INVALID_ARGUMENT);
  EXPECT_THAT(cpu.error.text(), HasSubstr("of a buffer of 100"));
  EXPECT_EQ(cpu.allocator->copy_out(cpu.device, nullptr, bytes, buffer, 101, 0, &cpu.error.error),
            PGR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(cpu.allocator->copy_in(cpu.device, nullptr, buffer, 50, bytes, 50, &cpu.error.error),
            PGR_STATUS_OK);
  cpu.allocator->free(cpu.device, buffer);
}

TEST(CpuMemory, LargeCopiesAndFills_AreWhole) {
  CpuDevice cpu;
  std::vector<uint32_t> values(3'000'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint32_t>(i * 2654435761u);
  Buffer<uint32_t> from(cpu, values), to(cpu, std::vector<uint32_t>(values.size()));
  cpu.check(cpu.allocator->copy(cpu.device, nullptr, to.handle, 0, from.handle, 0,
                                values.size() * 4, &cpu.error.error));
  EXPECT_EQ(to.values(), values);
  const uint32_t pattern = 0xdeadbeef;
  cpu.check(cpu.allocator->fill(cpu.device, nullptr, to.handle, 4, (values.size() - 2) * 4,
                                &pattern, 4, &cpu.error.error));
  std::vector<uint32_t> want(values.size(), pattern);
  want.front() = values.front();
  want.back() = values.back();
  EXPECT_EQ(to.values(), want);
}

TEST(CpuMemory, SubBuffer_KeepsItsParentAlive) {
  CpuDevice cpu;
  pgr_buffer* parent = allocate(cpu, 256, 0, PGR_ALLOC_ZERO);
  pgr_buffer* part = nullptr;
  cpu.check(cpu.allocator->sub_buffer(cpu.device, parent, 64, 128, &part, &cpu.error.error));
  EXPECT_EQ(cpu.allocator->sub_buffer(cpu.device, parent, 8, 8, &part, &cpu.error.error),
            PGR_STATUS_INVALID_ARGUMENT);
  cpu.allocator->free(cpu.device, parent);
  const uint64_t pattern = 42;
  cpu.check(cpu.allocator->fill(cpu.device, nullptr, part, 0, 128, &pattern, 8, &cpu.error.error));
  EXPECT_EQ(used_bytes(cpu), 256u);
  cpu.allocator->free(cpu.device, part);
  EXPECT_EQ(used_bytes(cpu), 0u);
}

}  // namespace
}  // namespace plugrad::testing
