// Detects the processor and its features, without LLVM.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plugrad::cpu_clang {

struct CpuFacts {
  std::string model;     // "AMD EPYC", for display
  std::string vendor;    // "AuthenticAMD"
  std::string arch;      // "x86_64-znver4", or the selected level: "x86-64-v3"
  std::string tune;      // LLVM's name of the processor to schedule for
  std::string features;  // features that the compiler may use: "+avx2,+fma,…"
  bool has_f16c = false, has_fma = false, has_sse41 = false;
  bool has_f16_math = false;  // AVX512-FP16
  uint32_t vector_bytes = 16;
  uint32_t vector_registers = 16;
  uint64_t cache_bytes[3] = {0, 0, 0};
  uint64_t memory_bytes = 0;
};

CpuFacts detect_cpu();

// The values of the option isa, joined by '|': "native|x86-64-v4|…".
std::string isa_names();

// Restricts the processor to a level of x86-64. Throws StatusError for a name that isa_names()
// lacks, and for a level that the processor does not support.
CpuFacts restrict_cpu(CpuFacts cpu, std::string_view isa);

}  // namespace plugrad::cpu_clang
