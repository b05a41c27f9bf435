// Prints a block: its parameters and arrays, then one line per instruction, indented by nesting.
#include "plugrad/sdk/float_bits.h"
#include "plugrad/sdk/ir_view.h"

namespace plugrad::sdk {
namespace {

std::string type_text(uint32_t dtype, uint32_t lanes) {
  std::string text(dtype_name(dtype));
  if (lanes > 1) text += "x" + std::to_string(lanes);
  return text;
}

std::string param_text(const pgr_ir_param& param) {
  std::string text = type_text(param.dtype, 1);
  if (param.kind == PGR_PARAM_SCALAR)
    return "scalar " + text + " in [" + std::to_string(param.min) + ", " +
           std::to_string(param.max) + "]";
  text = "buffer " + text + "[" + std::to_string(param.elem_count) + "]";
  if (param.flags & PGR_PARAM_READ) text += " read";
  if (param.flags & PGR_PARAM_WRITE) text += " write";
  if (param.flags & PGR_PARAM_NO_ALIAS) text += " no-alias";
  if (param.align_bytes) text += " align " + std::to_string(param.align_bytes);
  return text;
}

std::string array_text(const pgr_ir_array& array) {
  std::string text = array.space == PGR_SPACE_LOCAL ? "local " : "private ";
  text += type_text(array.dtype, 1) + "[" + std::to_string(array.elem_count) + "]";
  if (array.lanes > 1) text += " lanes " + std::to_string(array.lanes);
  if (array.align_bytes) text += " align " + std::to_string(array.align_bytes);
  return text;
}

std::string arg_text(const pgr_ir_inst& inst) {
  switch (inst.op) {
    case PGR_OP_CONST:
      return " " +
             (dtype_info(inst.dtype)->is_float    ? print_float(decode_float(inst.dtype, inst.arg))
              : dtype_info(inst.dtype)->is_signed ? std::to_string(static_cast<int64_t>(inst.arg))
                                                  : std::to_string(inst.arg));
    case PGR_OP_PARAM:
    case PGR_OP_ARRAY:
    case PGR_OP_GROUP_ID:
    case PGR_OP_LOCAL_ID:
    case PGR_OP_LANE:
    case PGR_OP_WMMA:
    case PGR_OP_ASYNC_WAIT:
      return " " + std::to_string(inst.arg);
    default:
      return "";
  }
}

template <typename Count>
std::string triple(const Count (&values)[3]) {
  return std::to_string(values[0]) + "x" + std::to_string(values[1]) + "x" +
         std::to_string(values[2]);
}

std::string inst_text(const IrView& ir, uint32_t number) {
  const pgr_ir_inst& inst = ir.inst(number);
  std::string text;
  if (inst.dtype != PGR_DTYPE_VOID) text += "%" + std::to_string(number) + " = ";
  text += op_info(inst.op)->name;
  if (inst.dtype != PGR_DTYPE_VOID)
    text += " " + type_text(inst.dtype, inst.lanes);
  else if (inst.lanes > 1)
    text += " x" + std::to_string(inst.lanes);
  text += arg_text(inst);
  const char* separator = " ";
  for (uint32_t source : ir.sources(number)) {
    text += separator + ("%" + std::to_string(source));
    separator = ", ";
  }
  return text;
}

}  // namespace

std::string print_ir(const IrView& ir) {
  std::string text = "kernel " + ir.name() + " groups " + triple(ir.header().group_count) +
                     " local " + triple(ir.header().local_size);
  if (ir.contract()) text += " contract";
  text += "\n";
  for (size_t i = 0; i < ir.params().size(); ++i)
    text += "param " + std::to_string(i) + ": " + param_text(ir.params()[i]) + "\n";
  for (size_t i = 0; i < ir.arrays().size(); ++i)
    text += "array " + std::to_string(i) + ": " + array_text(ir.arrays()[i]) + "\n";
  size_t depth = 1;
  for (uint32_t i = 0; i < ir.insts().size(); ++i) {
    const uint16_t op = ir.inst(i).op;
    if (op == PGR_OP_END_LOOP || op == PGR_OP_END_IF) --depth;
    text += std::string(depth * 2, ' ') + inst_text(ir, i) + "\n";
    if (op == PGR_OP_LOOP || op == PGR_OP_IF) ++depth;
  }
  return text;
}

}  // namespace plugrad::sdk
