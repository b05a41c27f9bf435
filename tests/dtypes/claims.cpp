#include "dtypes/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "plugrad/sdk/op_info.h"

namespace plugrad::dtypes {
namespace {

constexpr uint32_t bit(uint32_t dtype) {
  return 1u << dtype;
}
constexpr uint32_t kBool = bit(PGR_DTYPE_BOOL);
constexpr uint32_t kInts = bit(PGR_DTYPE_U64 + 1) - bit(PGR_DTYPE_I8);
constexpr uint32_t kFloats =
    bit(PGR_DTYPE_F16) | bit(PGR_DTYPE_BF16) | bit(PGR_DTYPE_F32) | bit(PGR_DTYPE_F64);
constexpr uint32_t kAll = 0xfffe;

uint32_t dtypes_of(Op op) {
  switch (op) {
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Neg:
      return kInts | kFloats;
    case Op::IDiv:
    case Op::Mod:
    case Op::Shl:
    case Op::Shr:
      return kInts;
    case Op::And:
    case Op::Or:
    case Op::Xor:
      return kBool | kInts;
    case Op::Max:
    case Op::CmpLt:
    case Op::CmpEq:
    case Op::CmpNe:
      return kBool | kInts | kFloats;
    case Op::Bitcast:
      return kAll & ~kBool;
    case Op::Fma:
    case Op::Recip:
    case Op::FDiv:
    case Op::Sqrt:
    case Op::Trunc:
    case Op::Exp2:
    case Op::Log2:
    case Op::Sin:
      return kFloats;
    default:
      return kAll;
  }
}

const sdk::OpInfo* find_op(std::string_view word) {
  for (const sdk::OpInfo& op : sdk::all_ops()) {
    std::string name(op.name);
    std::ranges::transform(name, name.begin(), [](char c) { return static_cast<char>(c | 0x20); });
    if (name == word) return &op;
  }
  return nullptr;
}

void withdraw(pgr_device_caps& caps, std::string_view word) {
  const size_t colon = word.find(':');
  const std::string_view first = word.substr(0, colon);
  const bool pair = colon != std::string_view::npos;
  if (word == "lanes") {
    for (uint32_t& lanes : caps.vector_lanes) lanes = 1;
    return;
  }
  const DType dtype = dtype_from_name(pair ? word.substr(colon + 1) : word);
  const uint32_t kept = dtype == DType::Void ? 0 : ~bit(static_cast<uint32_t>(dtype));
  if (pair && first == "store" && kept != 0) {
    caps.op_dtypes[PGR_OP_LOAD] &= kept;
    caps.op_dtypes[PGR_OP_STORE] &= kept;
  } else if (const sdk::OpInfo* op = find_op(first); op && (kept != 0 || !pair)) {
    caps.op_dtypes[op->number] &= kept;
  } else if (kept != 0) {
    for (const sdk::OpInfo& each : sdk::all_ops())
      if ((each.op_class == PGR_OP_CLASS_ALU && each.number != PGR_OP_BITCAST) ||
          each.number == PGR_OP_LOOP || each.number == PGR_OP_GROUP_ID)
        caps.op_dtypes[each.number] &= kept;
  } else {
    throw std::invalid_argument(std::string(word));
  }
}

}  // namespace

bool is_kernel_op(Op op, DType dtype) {
  return dtypes_of(op) >> static_cast<uint32_t>(dtype) & 1;
}

pgr_device_caps device_without(std::string_view withdrawn) {
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  for (const sdk::OpInfo& op : sdk::all_ops())
    caps.op_dtypes[op.number] = dtypes_of(static_cast<Op>(op.number));
  for (uint32_t& lanes : caps.vector_lanes) lanes = 4;
  while (!withdrawn.empty()) {
    const size_t comma = std::min(withdrawn.find(','), withdrawn.size());
    withdraw(caps, withdrawn.substr(0, comma));
    withdrawn.remove_prefix(std::min(comma + 1, withdrawn.size()));
  }
  caps.vector_registers = 16;
  caps.threads = 1;
  caps.subgroup_size = 1;
  caps.buffer_align_bytes = 16;
  return caps;
}

std::string first_unclaimed(const sdk::IrView& ir, const pgr_device_caps& caps) {
  std::string found;
  const auto check = [&](uint32_t i, uint32_t dtype) {
    if (found.empty() && dtype != PGR_DTYPE_VOID && !(caps.op_dtypes[ir.inst(i).op] & bit(dtype)))
      found = fmt::format("instruction {}: {} on {} in\n{}", i, sdk::op_info(ir.inst(i).op)->name,
                          sdk::dtype_name(dtype), sdk::print_ir(ir));
  };
  for (uint32_t i = 0; i < ir.insts().size(); ++i) {
    const pgr_ir_inst& inst = ir.inst(i);
    const bool alu = sdk::op_info(inst.op)->op_class == PGR_OP_CLASS_ALU;
    if (alu) check(i, ir.inst(ir.source(i, inst.op == PGR_OP_WHERE ? 1 : 0)).dtype);
    if (!alu || inst.op == PGR_OP_CAST) check(i, inst.dtype);
    if (inst.op == PGR_OP_STORE) check(i, ir.inst(ir.source(i, 2)).dtype);
  }
  return found;
}

}  // namespace plugrad::dtypes
