// The op enumeration, generated from ops.def, and what is known of each op.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/ops.def"

namespace plugrad {

enum class Op : uint8_t {
#define PLUGRAD_OP_ENUM(NAME, Pascal, number, lo, hi, op_class, meaning) Pascal = number,
  PGR_KERNEL_OPS(PLUGRAD_OP_ENUM)
#undef PLUGRAD_OP_ENUM
#define PLUGRAD_OP_ENUM(Pascal, number, lo, hi, arg, meaning) Pascal = number,
      PLUGRAD_GRAPH_OPS(PLUGRAD_OP_ENUM)
#undef PLUGRAD_OP_ENUM
};

enum class ArgKind : uint8_t { None, Int, Bits, List };

struct OpInfo {
  std::string_view name;  // as printed: the Pascal name
  uint8_t min_sources = 0, max_sources = 0;
  ArgKind arg = ArgKind::None;
  bool known = false, alu = false, movement = false, commutative = false;
  std::string_view meaning;
};

const OpInfo& op_info(Op op);

inline bool is_alu(Op op) {
  return op_info(op).alu;
}
inline bool is_movement(Op op) {
  return op_info(op).movement;
}
inline bool is_commutative(Op op) {
  return op_info(op).commutative;
}
inline bool is_compare(Op op) {
  return op == Op::CmpLt || op == Op::CmpEq || op == Op::CmpNe;
}

/// One bit per op for the early reject of rules; ops may share a bit.
inline uint64_t op_bit(Op op) {
  return uint64_t{1} << (static_cast<uint8_t>(op) & 63);
}

}  // namespace plugrad
