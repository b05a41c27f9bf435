// Parameters that optimisation made unused keep their slots: launches still give their buffers.
#include "codegen/emit/param_table.h"

#include <algorithm>

#include "codegen/analysis/access.h"
#include "ir/kernel_ast.h"

namespace plugrad::codegen {

std::vector<std::pair<Id, uint32_t>> write_params(const Kernel& kernel, IrWriter& writer) {
  const Graph& g = kernel.graph;
  uint32_t count = 0;
  const auto add = [&](const ParamInfo& info, DType dtype) {
    ++count;
    const bool is_shared = (info.flags & kParamShared) != 0;
    return writer.param(
        {PGR_PARAM_BUFFER, static_cast<uint32_t>(dtype),
         (info.flags & ~kParamShared & ~PGR_PARAM_NO_ALIAS) | (is_shared ? 0 : PGR_PARAM_NO_ALIAS),
         std::max(kernel.caps->buffer_align_bytes, 1u), static_cast<uint64_t>(info.elem_count), 0,
         0});
  };
  const auto unused = [&](uint32_t end) {
    while (count < end) add({.slot = count, .elem_count = 0, .flags = 0}, DType::U8);
  };
  std::vector<Id> found = nodes_of(g, kernel.sink, Op::Param);
  std::ranges::sort(found, {}, [&](Id id) { return param_info(g, id).slot; });
  std::vector<std::pair<Id, uint32_t>> out;
  for (Id id : found) {
    const ParamInfo info = param_info(g, id);
    unused(info.slot);
    const uint32_t number = add(info, g[id].dtype);
    out.emplace_back(id, writer.inst(PGR_OP_PARAM, g[id].dtype, 1, {}, number));
  }
  unused(kernel.param_count);
  const uint32_t first = count;
  for (int64_t most : kernel.scalars)
    writer.param(
        {PGR_PARAM_SCALAR, static_cast<uint32_t>(DType::I32), PGR_PARAM_READ, 0, 0, 0, most});
  for (Id id : nodes_of(g, kernel.sink, Op::Scalar))
    out.emplace_back(id,
                     writer.inst(PGR_OP_PARAM, g[id].dtype, 1, {}, first + scalar_number(g, id)));
  return out;
}

}  // namespace plugrad::codegen
