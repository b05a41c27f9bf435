// Verifies the dtypes and lanes of ALU ops by a table with one row per op.
#include "ir_verify.h"

namespace plugrad::sdk {
namespace {

// Sets of dtypes.
constexpr uint8_t kBool = 1, kInt = 2, kFloat = 4, kSmallFloat = 8;
constexpr uint8_t kNumber = kInt | kFloat, kBits = kBool | kInt, kAny = 15;
constexpr uint8_t kComparable = kBool | kNumber;

// Relation between the dtypes of the sources and of the result.
enum class Shape : uint8_t {
  Same,     // all sources and the result are of one dtype
  Compare,  // all sources of one dtype, the result is bool
  Select,   // source 0 is bool, the others and the result of one dtype
  Cast,     // any to any
  Bitcast,  // same size, neither is bool
};

struct AluRule {
  uint16_t op;
  uint8_t dtypes;  // of the sources; of the result for Select
  Shape shape;
};

// clang-format off
constexpr AluRule kRules[] = {
    {PGR_OP_ADD, kNumber, Shape::Same},       {PGR_OP_SUB, kNumber, Shape::Same},
    {PGR_OP_MUL, kNumber, Shape::Same},       {PGR_OP_NEG, kNumber, Shape::Same},
    {PGR_OP_IDIV, kInt, Shape::Same},         {PGR_OP_MOD, kInt, Shape::Same},
    {PGR_OP_MAX, kComparable, Shape::Same},   {PGR_OP_RECIP, kFloat, Shape::Same},
    {PGR_OP_FDIV, kFloat, Shape::Same},       {PGR_OP_SQRT, kFloat, Shape::Same},
    {PGR_OP_FMA, kFloat, Shape::Same},        {PGR_OP_TRUNC, kFloat, Shape::Same},
    {PGR_OP_AND, kBits, Shape::Same},         {PGR_OP_OR, kBits, Shape::Same},
    {PGR_OP_XOR, kBits, Shape::Same},         {PGR_OP_SHL, kInt, Shape::Same},
    {PGR_OP_SHR, kInt, Shape::Same},          {PGR_OP_CMPLT, kComparable, Shape::Compare},
    {PGR_OP_CMPEQ, kComparable, Shape::Compare}, {PGR_OP_CMPNE, kComparable, Shape::Compare},
    {PGR_OP_WHERE, kAny, Shape::Select},      {PGR_OP_CAST, kAny, Shape::Cast},
    {PGR_OP_BITCAST, kAny, Shape::Bitcast},   {PGR_OP_EXP2, kFloat, Shape::Same},
    {PGR_OP_LOG2, kFloat, Shape::Same},       {PGR_OP_SIN, kFloat, Shape::Same},
};
// clang-format on

uint8_t set_of(uint32_t dtype) {
  if (dtype == PGR_DTYPE_BOOL) return kBool;
  if (dtype_info(dtype)->is_int) return kInt;
  return dtype >= PGR_DTYPE_F8E4M3 ? kSmallFloat : kFloat;
}

const AluRule* find_rule(uint32_t op) {
  for (const AluRule& rule : kRules)
    if (rule.op == op) return &rule;
  return nullptr;
}

}  // namespace

void IrVerifier::check_alu(uint32_t number) {
  const pgr_ir_inst& self = inst(number);
  for (uint32_t source : ir_.sources(number))
    expect(number, inst(source).lanes == 1 || inst(source).lanes == self.lanes,
           "source %" + std::to_string(source) + " has " + std::to_string(inst(source).lanes) +
               " lanes, the result " + std::to_string(self.lanes));
  check_alu_dtypes(number);
}

void IrVerifier::check_alu_dtypes(uint32_t number) {
  const AluRule* rule = find_rule(inst(number).op);
  expect(number, rule != nullptr, "the verifier has no rule for it");
  const uint32_t result = inst(number).dtype;
  const bool is_select = rule->shape == Shape::Select;
  const uint32_t first = is_select ? 1 : 0;
  const uint32_t operand = src(number, first).dtype;
  expect(number, (set_of(operand) & rule->dtypes) != 0,
         "does not take " + std::string(dtype_name(operand)));
  for (uint32_t which = first; which < inst(number).src_count; ++which)
    expect(number, src(number, which).dtype == operand,
           "sources are of " + std::string(dtype_name(operand)) + " and " +
               std::string(dtype_name(src(number, which).dtype)));
  if (is_select)
    expect(number, src(number, 0).dtype == PGR_DTYPE_BOOL, "the condition is not bool");
  if (rule->shape == Shape::Same || is_select)
    expect(
        number, result == operand,
        "gives " + std::string(dtype_name(result)) + " from " + std::string(dtype_name(operand)));
  if (rule->shape == Shape::Compare)
    expect(number, result == PGR_DTYPE_BOOL, "gives bool, not " + std::string(dtype_name(result)));
  if (rule->shape == Shape::Bitcast)
    expect(number,
           dtype_size(result) == dtype_size(operand) && result != PGR_DTYPE_BOOL &&
               operand != PGR_DTYPE_BOOL,
           "cannot read " + std::string(dtype_name(operand)) + " as " +
               std::string(dtype_name(result)));
}

}  // namespace plugrad::sdk
