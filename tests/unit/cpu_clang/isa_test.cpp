// A processor limited to an x86-64 level: registers, claims and refusals, on made-up processors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpu_facts.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::cpu_clang {
namespace {

CpuFacts zen3() {
  CpuFacts cpu;
  cpu.vendor = "AuthenticAMD";
  cpu.arch = "x86_64-znver3", cpu.tune = "znver3";
  cpu.features =
      "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+lzcnt,+bmi,+bmi2,+movbe,+avx,+f16c,+fma,+avx2";
  cpu.has_f16c = cpu.has_fma = cpu.has_sse41 = true;
  cpu.vector_bytes = 32;
  cpu.cache_bytes[1] = 512 << 10;
  return cpu;
}

CpuFacts sapphire_rapids() {
  CpuFacts cpu = zen3();
  cpu.vendor = "GenuineIntel";
  cpu.features += ",+avx512f,+avx512cd,+avx512dq,+avx512bw,+avx512vl,+avx512vbmi,+avx512fp16";
  cpu.has_f16_math = true;
  cpu.vector_bytes = 64, cpu.vector_registers = 32;
  return cpu;
}

std::string refusal(const CpuFacts& cpu, const char* isa) {
  try {
    restrict_cpu(cpu, isa);
  } catch (const sdk::StatusError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CpuIsa, Native_IsTheProcessorItself) {
  const CpuFacts cpu = restrict_cpu(sapphire_rapids(), "native");
  EXPECT_EQ(cpu.features, sapphire_rapids().features);
  EXPECT_TRUE(cpu.has_f16_math);
}

TEST(CpuIsa, ALevelHasItsRegistersAndItsInstructions) {
  struct Row {
    const char* isa;
    uint32_t vector_bytes, registers;
    bool sse41, f16c_and_fma;
  };
  for (const Row& row :
       {Row{"x86-64", 16, 16, false, false}, Row{"x86-64-v2", 16, 16, true, false},
        Row{"x86-64-v3", 32, 16, true, true}, Row{"x86-64-v4", 64, 32, true, true}}) {
    const CpuFacts cpu = restrict_cpu(sapphire_rapids(), row.isa);
    EXPECT_EQ(cpu.arch, row.isa);
    EXPECT_EQ(cpu.vector_bytes, row.vector_bytes) << row.isa;
    EXPECT_EQ(cpu.vector_registers, row.registers) << row.isa;
    EXPECT_EQ(cpu.has_sse41, row.sse41) << row.isa;
    EXPECT_EQ(cpu.has_f16c, row.f16c_and_fma) << row.isa;
    EXPECT_EQ(cpu.has_fma, row.f16c_and_fma) << row.isa;
    EXPECT_FALSE(cpu.has_f16_math) << row.isa << " does not have AVX512-FP16";
    EXPECT_EQ(cpu.cache_bytes[1], 512u << 10) << "caches are the machine's";
  }
}

TEST(CpuIsa, FeaturesOfALevel_AreThoseOfThePsAbi) {
  EXPECT_EQ(restrict_cpu(zen3(), "x86-64").features, "+sse2");
  EXPECT_EQ(restrict_cpu(zen3(), "x86-64-v2").features,
            "+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt");
  EXPECT_EQ(restrict_cpu(sapphire_rapids(), "x86-64-v3").features,
            "+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,"
            "+movbe");
  EXPECT_EQ(restrict_cpu(zen3(), "x86-64-v3").tune, "znver3");
  EXPECT_EQ(restrict_cpu(sapphire_rapids(), "x86-64-v3").tune, "haswell");
}

TEST(CpuIsa, ALevelThatTheProcessorLacks_IsRefusedByName) {
  EXPECT_EQ(refusal(zen3(), "x86-64-v4"),
            "isa (PLUGRAD_CPU_TARGET) is x86-64-v4, and this processor lacks avx512f for it");
  CpuFacts without_fma = zen3();
  without_fma.features.erase(without_fma.features.find(",+fma"), 5);
  EXPECT_THAT(refusal(without_fma, "x86-64-v3"), testing::HasSubstr("lacks fma"));
  EXPECT_EQ(refusal(without_fma, "x86-64-v2"), "accepted");
}

TEST(CpuIsa, AnotherName_IsRefusedWithThoseThereAre) {
  for (const char* wrong : {"avx2", "v3", "", "x86-64-v5", "X86-64"})
    EXPECT_THAT(refusal(zen3(), wrong),
                testing::HasSubstr("one of native|x86-64-v4|x86-64-v3|x86-64-v2|x86-64"));
}

}  // namespace
}  // namespace plugrad::cpu_clang
