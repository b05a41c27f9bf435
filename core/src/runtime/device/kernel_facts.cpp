#include "runtime/device/kernel_facts.h"

#include <algorithm>
#include <cstring>

namespace plugrad::runtime {
namespace {

constexpr uint32_t kMostParams = 1 << 16;

#define PLUGRAD_SIZE_THROUGH(record, field) (offsetof(record, field) + sizeof(record::field))
constexpr uint64_t kHeaderBytes = PLUGRAD_SIZE_THROUGH(pgr_ir_header, group_count);
constexpr uint64_t kParamBytes = PLUGRAD_SIZE_THROUGH(pgr_ir_param, max);
#undef PLUGRAD_SIZE_THROUGH

template <class Record>
bool read_block(std::span<const std::byte> block, uint64_t offset, uint64_t bytes, Record& out) {
  if (offset > block.size() || bytes > block.size() - offset) return false;
  std::memcpy(&out, block.data() + offset, bytes);
  return true;
}

}  // namespace

std::optional<KernelFacts> read_kernel_facts(std::span<const std::byte> ir) {
  pgr_ir_header header{};
  if (!read_block(ir, 0, kHeaderBytes, header) || header.magic != PGR_IR_MAGIC) return std::nullopt;
  if (header.param_count > kMostParams || header.param_stride < kParamBytes) return std::nullopt;
  if (header.name_offset > ir.size() || header.name_bytes > ir.size() - header.name_offset)
    return std::nullopt;
  KernelFacts out;
  out.name.assign(reinterpret_cast<const char*>(ir.data()) + header.name_offset, header.name_bytes);
  out.total_bytes = header.total_bytes;
  std::copy_n(header.group_count, 3, out.group_count);
  std::copy_n(header.local_size, 3, out.local_size);
  for (uint32_t i = 0; i < header.param_count; ++i) {
    pgr_ir_param param{};
    const uint64_t at = header.param_offset + uint64_t{i} * header.param_stride;
    if (!read_block(ir, at, kParamBytes, param)) return std::nullopt;
    out.params.push_back(param);
  }
  return out;
}

}  // namespace plugrad::runtime
