#include "cpu_facts.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "plugrad/sdk/guard.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace plugrad::cpu_clang {

#if defined(__x86_64__)
namespace {

std::string text_of(const unsigned* words, size_t count) {
  std::string text(reinterpret_cast<const char*>(words), count * sizeof(unsigned));
  text.resize(text.find('\0') == std::string::npos ? text.size() : text.find('\0'));
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::string read_vendor() {
  unsigned highest = 0, words[3] = {0, 0, 0};
  __get_cpuid(0, &highest, &words[0], &words[2], &words[1]);
  return text_of(words, 3);
}

std::string read_model() {
  unsigned words[12] = {};
  for (size_t i = 0; i < 3; ++i)
    if (!__get_cpuid(0x80000002u + static_cast<unsigned>(i), &words[4 * i], &words[4 * i + 1],
                     &words[4 * i + 2], &words[4 * i + 3]))
      return "x86-64 processor";
  return text_of(words, 12);
}

// Each feature is tested separately: a virtual machine may hide some.
std::string read_features() {
  std::string list;
#define PLUGRAD_ASK(name) \
  if (__builtin_cpu_supports(name)) list += list.empty() ? "+" name : ",+" name
  PLUGRAD_ASK("sse3");
  PLUGRAD_ASK("ssse3");
  PLUGRAD_ASK("sse4.1");
  PLUGRAD_ASK("sse4.2");
  PLUGRAD_ASK("popcnt");
  PLUGRAD_ASK("lzcnt");
  PLUGRAD_ASK("bmi");
  PLUGRAD_ASK("bmi2");
  PLUGRAD_ASK("movbe");
  PLUGRAD_ASK("avx");
  PLUGRAD_ASK("f16c");
  PLUGRAD_ASK("fma");
  PLUGRAD_ASK("avx2");
  PLUGRAD_ASK("avx512f");
  PLUGRAD_ASK("avx512cd");
  PLUGRAD_ASK("avx512dq");
  PLUGRAD_ASK("avx512bw");
  PLUGRAD_ASK("avx512vl");
  PLUGRAD_ASK("avx512vbmi");
  PLUGRAD_ASK("avx512fp16");
#undef PLUGRAD_ASK
  return list;
}

bool has_all_of_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

std::string choose_tune(const std::string& vendor, bool has_avx512) {
  if (!__builtin_cpu_supports("avx2")) return "generic";
  if (vendor == "AuthenticAMD") return has_avx512 ? "znver4" : "znver3";
  return has_avx512 ? "icelake-server" : "haswell";
}

uint64_t ask_system(int what) {
  const long value = ::sysconf(what);
  return value > 0 ? static_cast<uint64_t>(value) : 0;
}

// The cache shared with the neighbouring cores. In a virtual machine sysconf may report the cache
// of the whole socket.
uint64_t shared_cache_bytes() {
  const uint64_t told = ask_system(_SC_LEVEL3_CACHE_SIZE);
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
  uint64_t kilobytes = 0;
  file >> kilobytes;
  return kilobytes > 0 && kilobytes << 10 < told ? kilobytes << 10 : told;
}

}  // namespace

CpuFacts detect_cpu() {
  __builtin_cpu_init();
  CpuFacts facts;
  facts.vendor = read_vendor();
  facts.model = read_model();
  facts.features = read_features();
  const bool has_avx512 = has_all_of_avx512();
  facts.tune = choose_tune(facts.vendor, has_avx512);
  facts.arch = "x86_64-" + facts.tune;
  facts.has_f16c = __builtin_cpu_supports("f16c");
  facts.has_fma = __builtin_cpu_supports("fma");
  facts.has_sse41 = __builtin_cpu_supports("sse4.1");
  facts.has_f16_math = has_avx512 && __builtin_cpu_supports("avx512fp16");
  facts.vector_bytes = has_avx512 ? 64 : __builtin_cpu_supports("avx2") ? 32 : 16;
  facts.vector_registers = has_avx512 ? 32 : 16;
  facts.cache_bytes[0] = ask_system(_SC_LEVEL1_DCACHE_SIZE);
  facts.cache_bytes[1] = ask_system(_SC_LEVEL2_CACHE_SIZE);
  facts.cache_bytes[2] = shared_cache_bytes();
  facts.memory_bytes = ask_system(_SC_PHYS_PAGES) * ask_system(_SC_PAGESIZE);
  return facts;
}
#else
CpuFacts detect_cpu() {
  throw sdk::StatusError(PGR_STATUS_UNSUPPORTED,
                         "cpu_clang generates x86-64 code only, and this is another processor");
}
#endif

namespace {

// The levels of the x86-64 psABI: the features that a level adds to the previous one, in LLVM's
// names.
struct Level {
  const char* name;
  const char* added;
  const char *tune, *amd_tune;
  uint32_t vector_bytes, vector_registers;
};
constexpr Level kLevels[] = {
    {"x86-64", "", "generic", "generic", 16, 16},
    {"x86-64-v2", "sse3,ssse3,sse4.1,sse4.2,popcnt", "generic", "generic", 16, 16},
    {"x86-64-v3", "avx,avx2,bmi,bmi2,f16c,fma,lzcnt,movbe", "haswell", "znver3", 32, 16},
    {"x86-64-v4", "avx512f,avx512bw,avx512cd,avx512dq,avx512vl", "icelake-server", "znver4", 64,
     32},
};

bool has_feature(std::string_view features, std::string_view name) {
  return (std::string(features) + ",").find("+" + std::string(name) + ",") != std::string::npos;
}

// Features of a level; `cpu` must have all of them.
std::string features_of(const Level& level, const CpuFacts& cpu) {
  std::string features = "+sse2";
  for (const Level& part : kLevels) {
    std::string_view rest = part.added;
    while (!rest.empty()) {
      const std::string_view name = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
      sdk::require(has_feature(cpu.features, name), PGR_STATUS_UNSUPPORTED,
                   "isa (PLUGRAD_CPU_TARGET) is " + std::string(level.name) +
                       ", and this processor lacks " + std::string(name) + " for it");
      features += ",+" + std::string(name);
    }
    if (&part == &level) break;
  }
  return features;
}

}  // namespace

std::string isa_names() {
  std::string names = "native";
  for (size_t i = std::size(kLevels); i-- > 0;) names += std::string("|") + kLevels[i].name;
  return names;
}

CpuFacts restrict_cpu(CpuFacts cpu, std::string_view isa) {
  if (isa == "native") return cpu;
  const Level* level = nullptr;
  for (const Level& one : kLevels)
    if (isa == one.name) level = &one;
  sdk::require(level != nullptr, PGR_STATUS_INVALID_ARGUMENT,
               "isa is \"" + std::string(isa) + "\"; it takes one of " + isa_names());
  cpu.features = features_of(*level, cpu);
  cpu.arch = level->name;
  cpu.tune = cpu.vendor == "AuthenticAMD" ? level->amd_tune : level->tune;
  cpu.has_f16c = has_feature(cpu.features, "f16c");
  cpu.has_fma = has_feature(cpu.features, "fma");
  cpu.has_sse41 = has_feature(cpu.features, "sse4.1");
  cpu.has_f16_math = false;
  cpu.vector_bytes = level->vector_bytes;
  cpu.vector_registers = level->vector_registers;
  return cpu;
}

}  // namespace plugrad::cpu_clang
