// What it takes to measure and check one kernel: contents for its buffers and a reference that is
// cheap enough.
#pragma once

#include "ir/kernel_ast.h"
#include "tuning/helper/messages.h"

namespace plugrad::tuning {

/// The parameters in order. What an index is computed of holds only numbers that keep the index
/// inside its buffer.
std::vector<ParamSpec> params_of(const KernelAst& ast);

/// The kernel, or one that computes a sample of its elements where the whole takes more than
/// `iterations` of its loops: elements spread evenly over each axis, the first and the last among
/// them.
struct ReferenceAst {
  Graph graph;
  Id sink = kNoId;
  bool is_sample = false;
};
ReferenceAst reference_of(const KernelAst& ast, double iterations);

/// By how much floats may differ that were added in another order, relative to their magnitude: 0
/// where they are exact (tuning/helper/bitwise_comparable.h), otherwise what rounding at random
/// makes likely.
double tolerance_of(const KernelAst& ast);
/// The same for numbers of any kind, of which no sum need be exact.
double rounding_of(const KernelAst& ast);

/// Sizes of the loops, by axis number.
std::vector<int64_t> loop_sizes(const KernelAst& ast);
double iterations_of(const KernelAst& ast);

/// Hash of the structure without sizes.
std::string family_of(const KernelAst& ast);

}  // namespace plugrad::tuning
