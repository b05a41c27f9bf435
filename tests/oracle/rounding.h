// Propagation of errors through single ops: the arithmetic of measured.h.
#pragma once

#include <span>

#include "ir/op.h"
#include "plugrad/dtype.h"

namespace plugrad::oracle {

int precision_of(DType dtype);   ///< significand bits of a float
double largest_of(DType dtype);  ///< finite
/// Distance of neighbouring floats at the magnitude.
double spacing(double magnitude, DType dtype);

/// One operand of an op: its value (of any dtype) and its error.
struct Term {
  double value, error;
};

/// Error of a float result of an elementwise op, its own rounding included.
double float_error(Op op, DType dtype, double result, std::span<const Term> terms);
/// The error of an integer or bool result: 0, or infinity if another value is possible.
double whole_error(Op op, DType dtype, DType source, std::span<const Term> terms);

/// The error of the largest of `terms`.
double maximum_error(std::span<const Term> terms);
/// The error of a sum of `terms` in any order.
double sum_error(DType dtype, std::span<const Term> terms);
double product_error(DType dtype, std::span<const Term> terms);

}  // namespace plugrad::oracle
