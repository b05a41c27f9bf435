// Fills the table of op_info() from ops.def.
#include "ir/op.h"

#include <array>

#include "ir/verifier.h"

namespace plugrad {
namespace {

// Columns of ops.def.
constexpr bool Commutes = true, Fixed = false;
constexpr uint8_t Never = 0, Tensor = static_cast<uint8_t>(Spec::Tensor),
                  Kernel = static_cast<uint8_t>(Spec::Kernel),
                  Program = static_cast<uint8_t>(Spec::Program), TensorKernel = Tensor | Kernel,
                  KernelProgram = Kernel | Program, All = Tensor | Kernel | Program;

constexpr std::array<OpInfo, 256> make_table() {
  std::array<OpInfo, 256> table{};
#define PLUGRAD_OP_ROW(NAME, Pascal, number, lo, hi, op_class, text)                   \
  table[number] = {.name = #Pascal,                                                    \
                   .min_sources = lo,                                                  \
                   .max_sources = hi,                                                  \
                   .kind = op_class == PGR_OP_CLASS_ALU ? OpKind::Alu : OpKind::Other, \
                   .meaning = text};
  PGR_KERNEL_OPS(PLUGRAD_OP_ROW)
#undef PLUGRAD_OP_ROW
#define PLUGRAD_OP_ROW(Pascal, arg_kind, in, rule, cost_class, order)               \
  {                                                                                 \
    OpInfo& row = table[static_cast<uint8_t>(Op::Pascal)];                          \
    row.arg = ArgKind::arg_kind, row.stages = in, row.operands = OperandRule::rule; \
    row.cost = OpCost::cost_class, row.commutative = order, row.known = true;       \
  }
  PLUGRAD_KERNEL_OP_FACTS(PLUGRAD_OP_ROW)
#undef PLUGRAD_OP_ROW
#define PLUGRAD_OP_ROW(Pascal, number, lo, hi, arg_kind, op_kind, in, rule, cost_class, order, \
                       text)                                                                   \
  table[number] = {#Pascal,                                                                    \
                   lo,                                                                         \
                   hi,                                                                         \
                   ArgKind::arg_kind,                                                          \
                   OpKind::op_kind,                                                            \
                   in,                                                                         \
                   OperandRule::rule,                                                          \
                   OpCost::cost_class,                                                         \
                   true,                                                                       \
                   order,                                                                      \
                   text};
  PLUGRAD_GRAPH_OPS(PLUGRAD_OP_ROW)
#undef PLUGRAD_OP_ROW
  return table;
}

constexpr std::array<OpInfo, 256> kOps = make_table();

constexpr bool every_op_has_facts() {
  for (const OpInfo& op : kOps)
    if (!op.name.empty() && !op.known) return false;
  return true;
}
static_assert(every_op_has_facts(), "an op of plugin_api has no row in PLUGRAD_KERNEL_OP_FACTS");

constexpr std::array<CostFacts, 9> kCosts = {{
    {0, 0, 0, 0},      // None
    {1, 0, 1, 0},      // a register reinterpreted
    {1, 1, 1, 1},      // Arithmetic
    {1, 4, 1, 4},      // Root
    {16, 8, 4, 2},     // of integers; by a constant: a product and shifts
    {56, 56, 56, 56},  // Hash: half of both words, which are used together
    {24, 8, 24, 8},    // Exponential
    {30, 8, 30, 8},    // Logarithm
    {120, 8, 120, 8}   // Sine
}};

}  // namespace

const OpInfo& op_info(Op op) {
  return kOps[static_cast<uint8_t>(op)];
}

const CostFacts& cost_facts(OpCost cost) {
  return kCosts[static_cast<uint8_t>(cost)];
}

}  // namespace plugrad
