// What this machine's processor is and can do, found without LLVM.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::cpu_clang {

struct CpuFacts {
  std::string model;     // "AMD EPYC", for people
  std::string vendor;    // "AuthenticAMD"
  std::string tune;      // LLVM's name of the processor to schedule for
  std::string features;  // what the compiler may use: "+avx2,+fma,…"
  bool has_f16c = false, has_fma = false, has_sse41 = false;
  uint32_t vector_bytes = 16;
  uint32_t vector_registers = 16;
  uint64_t cache_bytes[3] = {0, 0, 0};
  uint64_t memory_bytes = 0;
};

CpuFacts detect_cpu();

}  // namespace plugrad::cpu_clang
