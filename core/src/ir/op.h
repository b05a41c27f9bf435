// The op enumeration, generated from ops.def, and the facts of each op.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/internal.h"
#include "ir/ops.def"

namespace plugrad {

enum class Op : uint8_t {
#define PLUGRAD_OP_ENUM(NAME, Pascal, number, lo, hi, op_class, meaning) Pascal = number,
  PGR_KERNEL_OPS(PLUGRAD_OP_ENUM)
#undef PLUGRAD_OP_ENUM
#define PLUGRAD_OP_ENUM(Pascal, number, ...) Pascal = number,
      PLUGRAD_GRAPH_OPS(PLUGRAD_OP_ENUM)
#undef PLUGRAD_OP_ENUM
};

enum class ArgKind : uint8_t { None, Int, Bits, List };
enum class OpKind : uint8_t { Other, Movement, Alu };
/// The rule for the dtypes of an op's sources and result, as in ops.def.
enum class OperandRule : uint8_t { Any, First, Numbers, Integers, Floats, Bits, Comparison, Own };

/// The cost class of an op on an element of a vector.
enum class OpCost : uint8_t {
  None,
  Bits,
  Arithmetic,
  Root,
  Division,
  Hash,
  Exponential,
  Logarithm,
  Sine
};
struct CostFacts {
  uint32_t instructions;  ///< in a CPU kernel: counted in cpu_clang's disassembly of `exp2(x)` etc.
  uint32_t weight;        ///< throughput relative to an addition
  uint32_t instructions_by_constant, weight_by_constant;  ///< if source 1 is a constant
};
const CostFacts& cost_facts(OpCost cost);

struct OpInfo {
  std::string_view name;  // as printed: the Pascal name
  uint8_t min_sources = 0, max_sources = 0;
  ArgKind arg = ArgKind::None;
  OpKind kind = OpKind::Other;
  uint8_t stages = 0;  // bits of Spec (ir/verifier.h)
  OperandRule operands = OperandRule::Any;
  OpCost cost = OpCost::None;
  bool known = false, commutative = false;
  std::string_view meaning;
};

PLUGRAD_INTERNAL const OpInfo& op_info(Op op);

inline bool is_alu(Op op) {
  return op_info(op).kind == OpKind::Alu;
}
inline bool is_movement(Op op) {
  return op_info(op).kind == OpKind::Movement;
}
inline bool is_commutative(Op op) {
  return op_info(op).commutative;
}
inline bool is_compare(Op op) {
  return op_info(op).operands == OperandRule::Comparison;
}
/// Computed by a polynomial.
inline bool is_transcendental(Op op) {
  return op_info(op).cost >= OpCost::Exponential;
}

/// A bit for each op, for early rejection of rules; ops may share a bit.
inline uint64_t op_bit(Op op) {
  return uint64_t{1} << (static_cast<uint8_t>(op) & 63);
}

}  // namespace plugrad
