#include "bench/isa.h"

#include <stdlib.h>

#include <array>

#include "base/settings.h"

namespace plugrad::bench {
namespace {

// Instruction sets as libraries name them, newest first.
struct Known {
  const char* text;
  int level;
};
constexpr Known kKnown[] = {
    {"avx512", 4}, {"SkylakeX", 4}, {"Cooperlake", 4},  {"SapphireRapids", 4},
    {"skx", 4},    {"avx", 3},      {"Haswell", 3},     {"haswell", 3},
    {"Zen", 3},    {"zen", 3},      {"sandybridge", 3}, {"Sandy", 3},
    {"sse", 2},    {"Nehalem", 2},  {"penryn", 2},      {"generic", 1}};

RunningIsa named(const char* text) {
  if (!text) return {};
  const std::string name = text;
  for (const Known& known : kKnown)
    if (name.find(known.text) != std::string::npos) return {name, known.level};
  return {name, kAnyLevel};
}

RunningIsa isa_of_openblas(void* library) {
  const auto name = symbol<char* (*)()>(library, "openblas_get_corename");
  return name ? named(name()) : RunningIsa{};
}

RunningIsa isa_of_onednn(void* library) {
  const auto isa = symbol<int (*)()>(library, "dnnl_get_effective_cpu_isa");
  const auto name = symbol<const char* (*)(int)>(library, "dnnl_cpu_isa2str");
  return isa && name ? named(name(isa())) : RunningIsa{};
}

// BLIS identifies a processor kind by a number that depends on the version.
RunningIsa isa_of_blis(void* library) {
  const auto name = symbol<const char* (*)(int)>(library, "bli_arch_string");
  const auto query = symbol<int (*)()>(library, "bli_arch_query_id");
  const auto start = symbol<void (*)()>(library, "bli_init");
  if (!name || !query || !start) return {};
  constexpr const char* kOfLevel[] = {nullptr, "penryn", "penryn", "haswell", "skx", nullptr};
  constexpr int kKinds = 16;  // those of x86-64 are first
  if (const char* wanted = kOfLevel[chosen_isa().level])
    for (int kind = 0; kind < kKinds; ++kind)
      if (name(kind) && std::string(name(kind)) == wanted)
        setenv("BLIS_ARCH_TYPE", std::to_string(kind).c_str(), 1);
  start();
  return named(name(query()));
}

}  // namespace

std::span<const Isa> isas() {
  using Variables = std::vector<std::string>;
  static const Variables sse = {"ONEDNN_MAX_CPU_ISA=SSE41", "ATEN_CPU_CAPABILITY=default",
                                "OPENBLAS_CORETYPE=Nehalem", "MKL_ENABLE_INSTRUCTIONS=SSE4_2"};
  static const std::array<Isa, 5> all = {
      Isa{"native", "native", kAnyLevel, {}},
      Isa{"v4",
          "x86-64-v4",
          4,
          {"ONEDNN_MAX_CPU_ISA=AVX512_CORE", "ATEN_CPU_CAPABILITY=avx512",
           "OPENBLAS_CORETYPE=SkylakeX", "MKL_ENABLE_INSTRUCTIONS=AVX512"}},
      Isa{"v3",
          "x86-64-v3",
          3,
          {"ONEDNN_MAX_CPU_ISA=AVX2", "ATEN_CPU_CAPABILITY=avx2", "OPENBLAS_CORETYPE=Haswell",
           "MKL_ENABLE_INSTRUCTIONS=AVX2"}},
      Isa{"v2", "x86-64-v2", 2, sse},
      Isa{"v1", "x86-64", 1, sse},
  };
  return all;
}

const Isa& chosen_isa() {
  for (const Isa& isa : isas())
    if (settings().cpu_target == isa.target) return isa;
  return isas().front();
}

RunningIsa isa_of_library(const std::string& name, void* library) {
  if (name == "openblas") return isa_of_openblas(library);
  if (name == "blis") return isa_of_blis(library);
  if (name == "onednn") return isa_of_onednn(library);
  return {};
}

}  // namespace plugrad::bench
