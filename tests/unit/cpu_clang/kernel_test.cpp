// Kernels from IR to machine code, run, and compared with values computed in the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "unit/cpu_clang/cpu_device.h"

namespace plugrad::testing {
namespace {

using sdk::IrBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kRead = PGR_PARAM_READ | PGR_PARAM_NO_ALIAS;
constexpr uint32_t kWrite = PGR_PARAM_WRITE | PGR_PARAM_NO_ALIAS;

std::vector<float> counting(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

TEST(CpuKernels, AddOfVectors_OverGroups_TouchesEveryElement) {
  CpuDevice cpu;
  constexpr uint64_t kCount = 16 * 10;
  IrBuilder b("add");
  b.set_groups(10);
  const auto out = b.buffer(PGR_DTYPE_F32, kCount, kWrite);
  const auto left = b.buffer(PGR_DTYPE_F32, kCount, kRead);
  const auto right = b.buffer(PGR_DTYPE_F32, kCount, kRead);
  const auto at = b.alu(PGR_OP_MUL, {b.group_id(0), b.constant_int(PGR_DTYPE_I32, 16)});
  b.store(out, at, b.alu(PGR_OP_ADD, {b.load(left, at, 16), b.load(right, at, 16)}));
  Buffer<float> result(cpu, std::vector<float>(kCount, -1)), x(cpu, counting(kCount)),
      y(cpu, counting(kCount));
  Program(cpu, b, "add").run({result.handle, x.handle, y.handle}, {}, 10);
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(result.values()[i], 2.0f * float(i + 1));
}

TEST(CpuKernels, Reduction_KeepsItsSumInARegister) {
  CpuDevice cpu;
  IrBuilder b("sum");
  const auto out = b.buffer(PGR_DTYPE_F32, 1, kWrite), in = b.buffer(PGR_DTYPE_F32, 1000, kRead);
  const auto zero = b.constant_int(PGR_DTYPE_I64, 0);
  const auto acc = b.array(PGR_SPACE_PRIVATE, PGR_DTYPE_F32, 1);
  b.store(acc, zero, b.constant_float(PGR_DTYPE_F32, 0));
  const auto i = b.loop(zero, b.constant_int(PGR_DTYPE_I64, 1000));
  b.store(acc, zero, b.alu(PGR_OP_ADD, {b.load(acc, zero), b.load(in, i)}));
  b.end_loop(i);
  b.store(out, zero, b.load(acc, zero));
  Buffer<float> result(cpu, {0}), x(cpu, counting(1000));
  Program(cpu, b, "sum").run({result.handle, x.handle});
  EXPECT_EQ(result.values()[0], 500500.0f);
}

// out[x + 2 (y + 3 z)] = x + 10 y + 100 z, planned for 2 x 3 x 4 groups.
IrBuilder make_ids() {
  IrBuilder b("ids");
  b.set_groups(2, 3, 4);
  const auto out = b.buffer(PGR_DTYPE_I32, 24, kWrite);
  const auto number = [&](int64_t value) { return b.constant_int(PGR_DTYPE_I32, value); };
  const auto x = b.group_id(0), y = b.group_id(1), z = b.group_id(2);
  const auto row = b.alu(PGR_OP_ADD, {b.alu(PGR_OP_MUL, {z, number(3)}), y});
  const auto at = b.alu(PGR_OP_ADD, {b.alu(PGR_OP_MUL, {row, number(2)}), x});
  const auto tens = b.alu(PGR_OP_ADD, {b.alu(PGR_OP_MUL, {y, number(10)}), x});
  b.store(out, at, b.alu(PGR_OP_ADD, {b.alu(PGR_OP_MUL, {z, number(100)}), tens}));
  return b;
}

TEST(CpuKernels, Groups_OverThreeAxes_SeeTheirIds) {
  CpuDevice cpu;
  Program program(cpu, make_ids(), "ids");
  for (const auto& [counts_x, counts_y, counts_z] :
       {std::tuple{2, 3, 4}, {2, 3, 2}, {1, 3, 4}, {2, 2, 3}, {0, 3, 4}}) {
    Buffer<int32_t> result(cpu, std::vector<int32_t>(24, -1));
    program.run({result.handle}, {}, uint64_t(counts_x), uint64_t(counts_y), uint64_t(counts_z));
    for (int i = 0; i < 24; ++i) {
      const int x = i % 2, y = i / 2 % 3, z = i / 6;
      const bool is_launched = x < counts_x && y < counts_y && z < counts_z;
      EXPECT_EQ(result.values()[size_t(i)], is_launched ? z * 100 + y * 10 + x : -1)
          << counts_x << counts_y << counts_z << " groups, element " << i;
    }
  }
}

TEST(CpuKernels, CompileError_ComesWithTheCompilersLog) {
  CpuDevice cpu;
  std::string binary, log;
  EXPECT_EQ(cpu.try_compile("void k(void) { return wrong; }", false, binary, log),
            PGR_STATUS_COMPILE_FAILED);
  EXPECT_THAT(log, HasSubstr("undeclared identifier 'wrong'"));
  EXPECT_THAT(cpu.error.text(), HasSubstr("undeclared identifier 'wrong'"));
}

// LLVM casts halves by a function call if the processor has no instruction for it.
TEST(CpuKernels, HalvesAreCastOnEveryProcessor) {
  for (const char* isa : {"native", "x86-64-v3", "x86-64-v2", "x86-64"}) {
    CpuDevice cpu(isa);
    const std::string binary = cpu.compile(
        "void k(void* const* buffers, const unsigned long* scalars, unsigned long begin, "
        "unsigned long end) {\n"
        "  for (int i = 0; i < 5; ++i) {\n"
        "    const float wide = ((const _Float16*)buffers[1])[i];\n"
        "    ((_Float16*)buffers[0])[i] = (_Float16)(wide * 1.5f);\n  }\n}\n");
    const std::vector<uint16_t> given = {0x3c00, 0xc900, 0x0001, 0x7bff, 0xfc00};
    Buffer<uint16_t> result(cpu, std::vector<uint16_t>(5)), x(cpu, given);
    Program(cpu, binary, "k").run({result.handle, x.handle});
    // 1.5; -15; 1.5 times the smallest denormal, a tie; 1.5 times the largest value, an overflow.
    EXPECT_EQ(result.values(), (std::vector<uint16_t>{0x3e00, 0xcb80, 0x0002, 0x7c00, 0xfc00}))
        << isa;
  }
}

TEST(CpuKernels, ALibmCall_IsRefusedByName) {
  CpuDevice cpu;
  const std::string binary = cpu.compile("float sinf(float); void k(float* p) { *p = sinf(*p); }");
  try {
    Program program(cpu, binary, "k");
    FAIL() << "the object was loaded";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"sinf\""));
  }
}

}  // namespace
}  // namespace plugrad::testing
