#include "cost/machine.h"

#include <algorithm>
#include <span>

#include "base/hash.h"
#include "plugrad/plugin_api/kernel_ops.h"

namespace plugrad::cost {
namespace {

struct Row {
  const char* name;
  double registers, passing, multiply_adds, window, cycles_a_second;
};

// By MachineClass. Passing: AVX-512 and NEON multiply by an element of memory or of a vector,
// others load it into a register while the previous one is in use. Multiply-adds: without FMA, a
// multiplier and an adder work in parallel. Window: Skylake and Zen 2 hold 224 instructions,
// Neoverse N1 128; 0 is unknown. The other fields are the same in every row: those for which the
// searches were fitted.
constexpr Row kTable[] = {
    {"x86-64", 16, 2, 1, 224, 3e9},    {"x86-64-v2", 16, 2, 1, 224, 3e9},
    {"x86-64-v3", 16, 2, 2, 224, 3e9}, {"x86-64-v4", 32, 1, 2, 224, 3e9},
    {"aarch64", 32, 1, 2, 128, 3e9},   {"in step", 80, 1, 1, 0, 1.5e9},
    {"unknown", 16, 2, 2, 0, 1e9},
};

// Bytes of memory bandwidth per operation: a quarter on the CPUs measured, as memory is built to
// match the vector units.
constexpr double kMemoryBytesAnOperation = 0.25;
// Bytes a cycle that a server core of 2020 or later sustains from the second and the third cache,
// with prefetching; neither is assumed faster than the first cache.
constexpr double kSecond = 48, kThird = 15;

bool claims_f32(const pgr_device_caps& caps, uint32_t op) {
  return (caps.op_dtypes[op] >> PGR_DTYPE_F32 & 1) != 0;
}

void take(double& field, double measured) {
  if (measured > 0) field = measured;
}

}  // namespace

const char* name_of(MachineClass machine_class) {
  return kTable[static_cast<size_t>(machine_class)].name;
}

MachineClass class_of(std::string_view arch, const pgr_device_caps& caps) {
  if (caps.has_local != 0 && caps.subgroup_size > 1) return MachineClass::InStep;
  if (arch.starts_with("aarch64") || arch.starts_with("arm64")) return MachineClass::Aarch64;
  const bool is_x86 = arch.starts_with("x86_64") || arch.starts_with("x86-64");
  if (!arch.empty() && !is_x86) return MachineClass::Unknown;
  const uint32_t lanes = caps.vector_lanes[PGR_DTYPE_F32];
  if (lanes >= 16) return MachineClass::X86_64_v4;
  if (lanes >= 8) return MachineClass::X86_64_v3;
  return claims_f32(caps, PGR_OP_TRUNC) ? MachineClass::X86_64_v2 : MachineClass::X86_64;
}

Machine table_machine(std::string_view arch, const pgr_device_caps& caps) {
  const Row& row = kTable[static_cast<size_t>(class_of(arch, caps))];
  Machine m;
  m.registers = row.registers;
  m.passing = row.passing;
  m.multiply_adds = row.multiply_adds;
  m.window = row.window;
  m.cycles_a_second = row.cycles_a_second;
  take(m.lanes, caps.vector_lanes[PGR_DTYPE_F32]);
  take(m.registers, caps.vector_registers);
  take(m.threads, caps.threads);
  take(m.line_bytes, static_cast<double>(caps.cache_line_bytes));
  const double first = m.loads * m.lanes * 4;
  const double rates[] = {first, std::min(kSecond, first), std::min(kThird, first),
                          kMemoryBytesAnOperation * m.lanes * m.multiply_adds};
  for (size_t i = 0; i < m.levels.size(); ++i) {
    Level& level = m.levels[i];
    if (i < 3) take(level.bytes, static_cast<double>(caps.cache_bytes[i]));
    level.one = rates[i];
    level.all = level.one * m.threads;
  }
  return m;
}

uint64_t hash_of(const Machine& machine) {
  return hash64(std::as_bytes(std::span(&machine, 1)));
}

}  // namespace plugrad::cost
