#include "runtime/device/device_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/device/tables.h"
#include "runtime/plugin_text.h"

namespace plugrad::runtime {
namespace {

constexpr std::uint32_t kLeastParams = 8;  // docs/abi.md: sufficient for every kernel of the core
constexpr std::uint32_t kMostTensorCores = 1024;
constexpr std::uint64_t kMostTensorCoreStride = 1 << 16;
constexpr std::uint32_t kWidestVector = 64;  // in kernel IR
constexpr std::uint32_t kMostAlignment = 1 << 30;
constexpr std::uint32_t kMostBanks = 1 << 12;
constexpr std::uint32_t kMostTileEdge = 1 << 16;
// Larger than on any machine: larger values are clamped, so that products fit in 64 bits.
constexpr std::uint32_t kMostAtOnce = 1 << 20;  // threads, work-items, registers
constexpr std::uint32_t kWidestSubgroup = 1 << 10;
constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 48;
constexpr std::uint64_t kLongestLine = 1 << 16;
constexpr std::uint32_t kUnknownKind = UINT32_MAX;  // of a tensor core

[[noreturn]] void refuse_fact(const std::string& device, const std::string& what) {
  throw_status(device, "caps", PGR_STATUS_INCOMPATIBLE, "the plugin says " + what);
}

void check_lanes(const std::string& device, pgr_device_caps& caps) {
  for (std::size_t d = 0; d < std::size(caps.vector_lanes); ++d) {
    std::uint32_t& lanes = caps.vector_lanes[d];
    if (lanes != 0 && !std::has_single_bit(lanes))
      refuse_fact(device, fmt::format("vector_lanes[{}] = {}, which is no power of two", d, lanes));
    lanes = std::min(lanes, kWidestVector);
  }
}

template <class Fact>
void clamp(Fact& fact, std::uint64_t most) {
  fact = static_cast<Fact>(std::min<std::uint64_t>(fact, most));
}

void clamp_facts(pgr_device_caps& caps) {
  for (std::uint32_t* fact : {&caps.threads, &caps.vector_registers, &caps.max_local_total})
    clamp(*fact, kMostAtOnce);
  for (std::uint32_t& size : caps.max_local_size) clamp(size, kMostAtOnce);
  clamp(caps.subgroup_size, kWidestSubgroup);
  for (std::uint64_t& groups : caps.max_groups) clamp(groups, INT64_MAX);
  for (std::uint64_t& bytes : caps.cache_bytes) clamp(bytes, kMostMemory);
  for (std::uint64_t* bytes : {&caps.local_bytes, &caps.core_local_bytes, &caps.private_bytes})
    clamp(*bytes, kMostMemory);
  clamp(caps.cache_line_bytes, kLongestLine);
}

void check_groups(const std::string& device, const pgr_device_caps& caps) {
  if (!caps.has_local) return;
  for (int axis = 0; axis < 3; ++axis)
    if (caps.max_local_size[axis] == 0)
      refuse_fact(device, fmt::format("has_local = 1 and max_local_size[{}] = 0", axis));
  if (caps.max_local_total == 0) refuse_fact(device, "has_local = 1 and max_local_total = 0");
}

// Copies records of any length. A record of a later minor's dtype or kind keeps its index, since
// kernels name cores by index, but is never used.
void read_cores(const std::string& device, const pgr_device_caps& caps,
                std::vector<pgr_tensor_core>& out) {
  if (caps.tensor_core_count == 0 || !caps.tensor_cores) return;
  if (caps.tensor_core_count > kMostTensorCores)
    refuse_fact(device, fmt::format("tensor_core_count = {}, more than {}", caps.tensor_core_count,
                                    kMostTensorCores));
  const std::uint64_t stride = caps.tensor_core_stride;
  if (stride < sizeof(pgr_struct_header) || stride % alignof(void*) != 0 ||
      stride > kMostTensorCoreStride)
    refuse_fact(device, fmt::format("tensor_core_stride = {}", stride));
  for (std::uint32_t i = 0; i < caps.tensor_core_count; ++i) {
    auto* at = reinterpret_cast<const unsigned char*>(caps.tensor_cores) + i * stride;
    pgr_tensor_core core;
    const bool is_other = copy_table(at, PGR_STRUCT_TENSOR_CORE, core) ||
                          core.kind != PGR_TENSOR_CORE_LANES ||
                          std::max(core.dtype_in, core.dtype_out) >= PGR_DTYPE_COUNT;
    if (is_other) {
      PGR_INIT(core, TENSOR_CORE);
      core.kind = kUnknownKind;
      out.push_back(core);
      continue;
    }
    for (std::uint32_t edge : {core.n, core.m, core.k, core.threads})
      if (edge == 0 || edge > kMostTileEdge)
        refuse_fact(device, fmt::format("tensor core {} is {} x {} x {} of {} threads", i, core.n,
                                        core.m, core.k, core.threads));
    out.push_back(core);
  }
}

}  // namespace

DeviceInfo checked_info(const std::string& device, const pgr_device_info& theirs) {
  DeviceInfo out{sanitise_text(theirs.stable_id), sanitise_text(theirs.name),
                 sanitise_text(theirs.arch),      sanitise_text(theirs.vendor),
                 sanitise_text(theirs.driver),    theirs.memory_bytes,
                 theirs.is_software != 0};
  if (out.stable_id.empty())
    throw_status(device, "info", PGR_STATUS_INCOMPATIBLE,
                 "the plugin gives no stable id, by which devices are told apart");
  if (out.name.empty()) out.name = out.arch;
  return out;
}

void check_caps(const std::string& device, pgr_device_caps& caps,
                std::vector<pgr_tensor_core>& cores) {
  check_lanes(device, caps);
  check_groups(device, caps);
  clamp_facts(caps);
  if (caps.max_params != 0 && caps.max_params < kLeastParams)
    refuse_fact(device, fmt::format("max_params = {}: kernels need {} (0: unknown)",
                                    caps.max_params, kLeastParams));
  if (caps.denormals > PGR_DENORMALS_UNSPECIFIED) caps.denormals = PGR_DENORMALS_UNSPECIFIED;
  if (caps.local_banks > kMostBanks || caps.local_bank_bytes == 0) caps.local_banks = 0;
  const std::uint32_t align = caps.buffer_align_bytes;
  if (align != 0 && (!std::has_single_bit(align) || align > kMostAlignment))
    refuse_fact(device,
                fmt::format("buffer_align_bytes = {}: not a power of two up to 2^30", align));
  read_cores(device, caps, cores);
  caps.tensor_cores = cores.data();
  caps.tensor_core_count = static_cast<std::uint32_t>(cores.size());
  caps.tensor_core_stride = sizeof(pgr_tensor_core);
}

}  // namespace plugrad::runtime
