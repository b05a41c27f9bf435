#include "tuning/ir_params.h"

#include <cstring>

#include "plugrad/plugin_api/kernel_ir.h"

namespace plugrad::tuning {

IrParams params_in(std::span<const std::byte> ir) {
  pgr_ir_header header;
  std::memcpy(&header, ir.data(), sizeof header);
  IrParams out;
  for (uint32_t i = 0; i < header.param_count; ++i) {
    pgr_ir_param param;
    std::memcpy(&param, ir.data() + header.param_offset + size_t{i} * header.param_stride,
                sizeof param);
    if (param.kind == PGR_PARAM_SCALAR)
      out.greatest_scalars.push_back(static_cast<uint64_t>(param.max));
    else
      ++out.buffer_count;
  }
  return out;
}

}  // namespace plugrad::tuning
