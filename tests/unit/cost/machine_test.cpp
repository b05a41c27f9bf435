#include "cost/machine.h"

#include <gtest/gtest.h>

#include "plugrad/plugin_api/kernel_ops.h"

namespace plugrad::cost {
namespace {

pgr_device_caps cpu(uint32_t lanes, uint32_t threads) {
  pgr_device_caps caps{};
  caps.vector_lanes[PGR_DTYPE_F32] = lanes;
  caps.threads = threads;
  return caps;
}

TEST(Machine, has_a_class_by_architecture_and_claims) {
  pgr_device_caps caps = cpu(4, 1);
  EXPECT_EQ(class_of("x86_64-generic", caps), MachineClass::X86_64);
  caps.op_dtypes[PGR_OP_TRUNC] = 1u << PGR_DTYPE_F32;
  EXPECT_EQ(class_of("x86_64-generic", caps), MachineClass::X86_64_v2);
  EXPECT_EQ(class_of("aarch64", caps), MachineClass::Aarch64);
  EXPECT_EQ(class_of("tpu-9", caps), MachineClass::Unknown);
  EXPECT_EQ(class_of("x86_64-znver3", cpu(8, 1)), MachineClass::X86_64_v3);
  EXPECT_EQ(class_of("x86-64-v3", cpu(8, 1)), MachineClass::X86_64_v3);
  EXPECT_EQ(class_of("", cpu(16, 1)), MachineClass::X86_64_v4);
  caps.has_local = 1;
  EXPECT_EQ(class_of("sm_90", caps), MachineClass::Unknown);
  caps.subgroup_size = 32;
  EXPECT_EQ(class_of("sm_90", caps), MachineClass::InStep);
}

// 8 lanes x 2 multiply-adds: 16 operations per cycle, with a quarter of a byte each.
TEST(Machine, of_the_table_feeds_its_vectors) {
  const Machine m = table_machine("x86_64-znver3", cpu(8, 6));
  EXPECT_EQ(m.registers, 16);
  EXPECT_EQ(m.passing, 2);  // AVX2 has no multiplication by a broadcast memory operand
  EXPECT_EQ(table_machine("x86_64-znver4", cpu(16, 6)).passing, 1);
  EXPECT_EQ(m.window, 224);
  EXPECT_EQ(table_machine("aarch64", cpu(4, 6)).window, 128);
  EXPECT_EQ(m.threads, 6);
  EXPECT_EQ(m.memory().one, 4);
  EXPECT_EQ(m.memory().all, 24);
  EXPECT_EQ(m.levels[0].one, 64);  // two loads of 32 bytes
  EXPECT_EQ(m.levels[1].one, 48);
  EXPECT_EQ(m.levels[2].all, 6 * 15);
  EXPECT_EQ(m.bytes_an_operation(), 0.25);
}

// Constants on which the searches' parameters depend; the tables of every class must keep them.
TEST(Machine, costs_are_the_same_by_every_row) {
  const char* const archs[] = {"", "x86_64-haswell", "aarch64", "sm_90", "tpu-9"};
  for (const char* arch : archs)
    for (uint32_t lanes : {0u, 1u, 4u, 8u, 16u})
      for (uint32_t threads : {0u, 1u, 3u, 96u}) {
        const Machine m = table_machine(arch, cpu(lanes, threads));
        EXPECT_EQ(m.load_cost(), 0.5);
        EXPECT_EQ(m.lane_cost, 3);
        EXPECT_EQ(m.latency, 4);
        EXPECT_EQ(m.bytes_an_operation(), 0.25) << arch << lanes << " " << threads;
        EXPECT_EQ(m.near_bytes, 65'536);
        EXPECT_EQ(m.kernel_cost(), 6'000);
        EXPECT_EQ(m.parallel_iterations(), 32'768);
      }
  EXPECT_EQ(Machine().bytes_an_operation(), 0.25);
}

TEST(Machine, says_what_the_device_says) {
  pgr_device_caps caps = cpu(8, 2);
  caps.vector_registers = 24;
  caps.cache_line_bytes = 128;
  caps.cache_bytes[0] = 49'152;
  const Machine m = table_machine("x86_64-v3", caps);
  EXPECT_EQ(m.registers, 24);
  EXPECT_EQ(m.line_bytes, 128);
  EXPECT_EQ(m.levels[0].bytes, 49'152);
  EXPECT_EQ(m.levels[1].bytes, 524'288);  // not told: the table's
}

TEST(Machine, keys_differ_where_a_figure_does) {
  Machine a = table_machine("", cpu(8, 2)), b = a;
  EXPECT_EQ(hash_of(a), hash_of(b));
  b.levels[3].all += 1;
  EXPECT_NE(hash_of(a), hash_of(b));
}

}  // namespace
}  // namespace plugrad::cost
