// The specified result of each op (docs/kernel-ir.md), computed by MPFR and by integers wider than
// any dtype. Bits are as in memory, zero-extended; a bool is 0 or 1.
#pragma once

#include <cstdint>
#include <span>

#include "conformance/numbers/format.h"

namespace plugrad::conformance {

// An op and its dtypes. `from` is the dtype of the operands (of sources 1 and 2 for WHERE), `to` of
// the result.
struct Operation {
  uint32_t op = PGR_OP_NOP;
  uint32_t from = PGR_DTYPE_VOID, to = PGR_DTYPE_VOID;

  uint32_t source_count() const;
  uint32_t source_dtype(uint32_t which) const;  // bool for source 0 of WHERE
};

// An ALU op other than CAST and BITCAST on a dtype; fills in its result dtype.
Operation make_operation(uint32_t op, uint32_t dtype);

// True if kernel IR has the op on these dtypes (CAST and BITCAST included).
bool is_operation(uint32_t op, uint32_t from, uint32_t to);

struct Expected {
  uint64_t bits = 0;            // exact, or correctly rounded
  bool is_unspecified = false;  // any value is valid: a float outside the integer's range
};
Expected expected_result(const Operation& operation, std::span<const uint64_t> sources);

// The result before rounding, to the precision of `out`; for float results.
void set_real_result(mpfr_ptr out, const Operation& operation, std::span<const uint64_t> sources);

}  // namespace plugrad::conformance
