// Prepares the timing and checking of one kernel: contents for its buffers and an affordable
// reference.
#pragma once

#include "ir/kernel_ast.h"
#include "tuning/helper/messages.h"

namespace plugrad::tuning {

/// The parameters in order. A buffer from which indices are computed gets contents that keep every
/// index inside its buffer.
std::vector<ParamSpec> params_of(const KernelAst& ast);

/// The kernel or, if its loops have more than `iterations` iterations, one that computes a sample
/// of its elements: spread evenly over each axis, including the first and the last.
struct ReferenceAst {
  Graph graph;
  Id sink = kNoId;
  bool is_sample = false;
};
ReferenceAst reference_of(const KernelAst& ast, double iterations);

/// Relative tolerance for floats summed in another order: 0 if they are exact
/// (bitwise_comparable.h), otherwise the likely error of random rounding.
double tolerance_of(const KernelAst& ast);
/// The tolerance for arbitrary contents, of which sums need not be exact.
double rounding_of(const KernelAst& ast);

/// Sizes of the loops, by axis number.
std::vector<int64_t> loop_sizes(const KernelAst& ast);
double iterations_of(const KernelAst& ast);

/// Hash of the structure without sizes.
std::string family_of(const KernelAst& ast);

}  // namespace plugrad::tuning
