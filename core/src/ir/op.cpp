// Fills the table behind op_info from ops.def.
#include "ir/op.h"

#include <array>

namespace plugrad {
namespace {

constexpr ArgKind kernel_arg(Op op) {
  switch (op) {
    case Op::Const:
      return ArgKind::Bits;
    case Op::Param:
    case Op::Array:
      return ArgKind::List;
    case Op::GroupId:
    case Op::LocalId:
    case Op::Load:    // lanes, 0 until vectors are made
    case Op::Vector:  // lanes of the result
    case Op::Lane:    // first lane, and lanes of the result above bit 16
    case Op::Wmma:
    case Op::AsyncCopy:  // lanes
    case Op::AsyncWait:
      return ArgKind::Int;
    default:
      return ArgKind::None;
  }
}

constexpr bool commutes(Op op) {
  switch (op) {
    case Op::Add:
    case Op::Mul:
    case Op::Max:
    case Op::And:
    case Op::Or:
    case Op::Xor:
    case Op::CmpEq:
    case Op::CmpNe:
      return true;
    default:
      return false;
  }
}

constexpr bool moves(Op op) {
  return op >= Op::Reshape && op <= Op::Flip;
}

constexpr std::array<OpInfo, 256> make_table() {
  std::array<OpInfo, 256> table{};
#define PLUGRAD_OP_ROW(NAME, Pascal, number, lo, hi, op_class, text) \
  table[number] = {#Pascal, lo,                                      \
                   hi,      kernel_arg(Op::Pascal),                  \
                   true,    op_class == PGR_OP_CLASS_ALU,            \
                   false,   commutes(Op::Pascal),                    \
                   text};
  PGR_KERNEL_OPS(PLUGRAD_OP_ROW)
#undef PLUGRAD_OP_ROW
#define PLUGRAD_OP_ROW(Pascal, number, lo, hi, arg_kind, text) \
  table[number] = {#Pascal, lo, hi, ArgKind::arg_kind, true, false, moves(Op::Pascal), false, text};
  PLUGRAD_GRAPH_OPS(PLUGRAD_OP_ROW)
#undef PLUGRAD_OP_ROW
  table[static_cast<uint8_t>(Op::FloorDiv)].alu = true;
  table[static_cast<uint8_t>(Op::FloorMod)].alu = true;
  return table;
}

constexpr std::array<OpInfo, 256> kOps = make_table();

}  // namespace

const OpInfo& op_info(Op op) {
  return kOps[static_cast<uint8_t>(op)];
}

}  // namespace plugrad
