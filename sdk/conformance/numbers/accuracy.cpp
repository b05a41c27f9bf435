#include "conformance/numbers/accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace plugrad::conformance {
namespace {

constexpr AccuracyRow exact(uint32_t op) {
  return {op, Accuracy::Exact, 0, 0, 0, 0};
}
constexpr AccuracyRow rounded(uint32_t op) {
  return {op, Accuracy::Rounded, 0, 0, 0, 0};
}
constexpr AccuracyRow division(uint32_t op) {
  return {op, Accuracy::Division, 0, 0, 0, 0};
}

// OpenCL's accuracy table for the full profile: f32, f64 and f16; bf16, which OpenCL lacks, as f16.
// Square roots are correctly rounded, as kernel IR specifies.
constexpr AccuracyRow kTable[] = {
    rounded(PGR_OP_ADD),
    rounded(PGR_OP_SUB),
    rounded(PGR_OP_MUL),
    exact(PGR_OP_NEG),
    exact(PGR_OP_IDIV),
    exact(PGR_OP_MOD),
    exact(PGR_OP_MAX),
    division(PGR_OP_RECIP),
    division(PGR_OP_FDIV),
    rounded(PGR_OP_SQRT),
    rounded(PGR_OP_FMA),
    exact(PGR_OP_TRUNC),
    exact(PGR_OP_AND),
    exact(PGR_OP_OR),
    exact(PGR_OP_XOR),
    exact(PGR_OP_SHL),
    exact(PGR_OP_SHR),
    exact(PGR_OP_CMPLT),
    exact(PGR_OP_CMPEQ),
    exact(PGR_OP_CMPNE),
    exact(PGR_OP_WHERE),
    rounded(PGR_OP_CAST),
    exact(PGR_OP_BITCAST),
    {PGR_OP_EXP2, Accuracy::Ulp, 2, 2, 3, 3},
    {PGR_OP_LOG2, Accuracy::Ulp, 2, 2, 3, 3},
    {PGR_OP_SIN, Accuracy::Ulp, 2, 2, 4, 4},
};

constexpr bool covers_every_alu_op() {
#define COUNT_ALU(NAME, Pascal, number, lo, hi, op_class, meaning) \
  +(op_class == PGR_OP_CLASS_ALU ? 1 : 0)
  constexpr size_t kAluOps = 0 PGR_KERNEL_OPS(COUNT_ALU);
#undef COUNT_ALU
  for (size_t i = 1; i < std::size(kTable); ++i)
    if (kTable[i].op <= kTable[i - 1].op) return false;
  return std::size(kTable) == kAluOps;
}
static_assert(covers_every_alu_op(), "an ALU op of kernel_ops.h has no row, or is out of order");

double ulp_of(const AccuracyRow& row, uint32_t dtype) {
  switch (dtype) {
    case PGR_DTYPE_F16:
      return row.f16;
    case PGR_DTYPE_BF16:
      return row.bf16;
    case PGR_DTYPE_F32:
      return row.f32;
    case PGR_DTYPE_F64:
      return row.f64;
    default:
      return 0;
  }
}

}  // namespace

std::span<const AccuracyRow> accuracy_table() {
  return kTable;
}

const AccuracyRow& accuracy_of(uint32_t op) {
  const auto row = std::ranges::find(kTable, op, &AccuracyRow::op);
  if (row == std::end(kTable)) throw std::logic_error(fmt::format("op {} has no accuracy", op));
  return *row;
}

double tolerance_ulp(uint32_t op, uint32_t dtype, uint32_t division) {
  const AccuracyRow& row = accuracy_of(op);
  if (row.kind == Accuracy::Division) return division;
  return row.kind == Accuracy::Ulp ? ulp_of(row, dtype) : 0;
}

std::string accuracy_text(uint32_t op, uint32_t dtype) {
  const AccuracyRow& row = accuracy_of(op);
  switch (row.kind) {
    case Accuracy::Exact:
      return "exact";
    case Accuracy::Rounded:
      return "rounded";
    case Accuracy::Division:
      return "`division` ulp";
    case Accuracy::Ulp:
      return fmt::format("{} ulp", ulp_of(row, dtype));
  }
  return {};
}

}  // namespace plugrad::conformance
