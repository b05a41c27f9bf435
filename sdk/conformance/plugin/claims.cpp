// Compares a block's requirements with a device's claims.
#include <algorithm>

#include "conformance/plugin/device.h"
#include "conformance/test.h"
#include "plugrad/sdk/ir_view.h"
#include "plugrad/sdk/tensor_core.h"

namespace plugrad::conformance {
namespace {

[[noreturn]] void lacks(const std::string& what) {
  throw Unsupported("the device does not claim " + what);
}

std::string on_dtype(uint32_t op, uint32_t dtype) {
  return std::string(sdk::op_info(op)->name) + " on " + std::string(sdk::dtype_name(dtype));
}

void require_op(const Device& device, uint32_t op, uint32_t dtype) {
  if (!device.claims(op, dtype)) lacks(on_dtype(op, dtype));
}

void require_alu(const Device& device, const sdk::IrView& ir, uint32_t number) {
  const pgr_ir_inst& inst = ir.inst(number);
  const uint32_t operand = inst.op == PGR_OP_WHERE ? 1 : 0;
  require_op(device, inst.op, ir.inst(ir.source(number, operand)).dtype);
  if (inst.op == PGR_OP_CAST) require_op(device, inst.op, inst.dtype);
}

// The widest operand of this dtype of any tensor core: it may be moved regardless of vector
// support.
uint32_t operand_lanes(const pgr_device_caps& caps, const pgr_ir_inst& inst) {
  uint32_t widest = 1;
  if (sdk::op_info(inst.op)->op_class == PGR_OP_CLASS_ALU) return widest;
  for (const pgr_tensor_core& core : sdk::tensor_cores_of(caps)) {
    if (core.dtype_in == inst.dtype) widest = std::max({widest, core.elems_a, core.elems_b});
    if (core.dtype_out == inst.dtype) widest = std::max(widest, core.elems_c);
  }
  return widest;
}

void require_async_copy(const Device& device, const sdk::IrView& ir, uint32_t number) {
  const uint32_t dtype = ir.inst(ir.source(number, 0)).dtype;
  require_op(device, PGR_OP_ASYNC_COPY, dtype);
  const uint32_t bytes = sdk::dtype_size(dtype) * ir.inst(number).lanes;
  if ((device.caps().async_copy_bytes & bytes) == 0)
    lacks("asynchronous copies of " + std::to_string(bytes) + " bytes");
}

void require_inst(const Device& device, const sdk::IrView& ir, uint32_t number) {
  const pgr_ir_inst& inst = ir.inst(number);
  const pgr_device_caps& caps = device.caps();
  if (inst.lanes > 1 && inst.dtype != PGR_DTYPE_VOID &&
      inst.lanes > caps.vector_lanes[inst.dtype] && inst.lanes > operand_lanes(caps, inst))
    lacks(std::to_string(inst.lanes) + " lanes of " + std::string(sdk::dtype_name(inst.dtype)));
  if ((inst.op == PGR_OP_LOCAL_ID || inst.op == PGR_OP_BARRIER) && !caps.has_local)
    lacks("groups of work-items that meet (has_local)");
  if (inst.op == PGR_OP_BARRIER) require_op(device, inst.op, PGR_DTYPE_BOOL);
  if (sdk::op_info(inst.op)->op_class == PGR_OP_CLASS_ALU)
    require_alu(device, ir, number);
  else if (inst.op == PGR_OP_ATOMIC_ADD || inst.op == PGR_OP_STORE)
    require_op(device, inst.op, ir.inst(ir.source(number, 2)).dtype);
  else if (inst.op == PGR_OP_WMMA)
    require_op(device, inst.op, ir.inst(ir.source(number, 0)).dtype);
  else if (inst.op == PGR_OP_ASYNC_COPY)
    require_async_copy(device, ir, number);
  else if (inst.dtype != PGR_DTYPE_VOID)
    require_op(device, inst.op, inst.dtype);
}

void require_memory(const Device& device, const sdk::IrView& ir) {
  for (const pgr_ir_param& param : ir.params())
    if (param.kind == PGR_PARAM_BUFFER && !device.stores(param.dtype))
      lacks("buffers of " + std::string(sdk::dtype_name(param.dtype)));
  uint64_t local_bytes = 0;
  for (const pgr_ir_array& array : ir.arrays())
    if (array.space == PGR_SPACE_LOCAL)
      local_bytes += array.elem_count * sdk::dtype_size(array.dtype);
  if (local_bytes > device.caps().local_bytes)
    lacks(std::to_string(local_bytes) + " bytes of local memory");
}

void require_launch(const pgr_device_caps& caps, const pgr_ir_header& header) {
  uint64_t total = 1;
  for (int axis = 0; axis < 3; ++axis) {
    total *= header.local_size[axis];
    if (header.local_size[axis] > 1 && header.local_size[axis] > caps.max_local_size[axis])
      lacks("groups of " + std::to_string(header.local_size[axis]) + " work-items along an axis");
    if (header.group_count[axis] > 1 && header.group_count[axis] > caps.max_groups[axis])
      lacks(std::to_string(header.group_count[axis]) + " groups along an axis");
  }
  if (total > 1 && total > caps.max_local_total)
    lacks("groups of " + std::to_string(total) + " work-items");
  if (header.param_count > caps.max_params)
    lacks(std::to_string(header.param_count) + " parameters");
}

}  // namespace

bool Device::claims(uint32_t op, uint32_t dtype) const {
  return op < 64 && dtype < PGR_DTYPE_COUNT && (caps().op_dtypes[op] >> dtype & 1) != 0;
}

bool Device::stores(uint32_t dtype) const {
  return dtype < PGR_DTYPE_COUNT && (caps().storage_dtypes >> dtype & 1) != 0;
}

void Device::require_claims(std::span<const std::byte> kernel_ir) const {
  const sdk::IrView ir = sdk::decode_ir(kernel_ir);
  require_launch(caps(), ir.header());
  require_memory(*this, ir);
  for (uint32_t i = 0; i < ir.insts().size(); ++i)
    if (ir.inst(i).op != PGR_OP_NOP) require_inst(*this, ir, i);
}

}  // namespace plugrad::conformance
