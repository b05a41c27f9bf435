// Evaluates an ALU op on constants, exactly as a kernel does.
#pragma once

#include <optional>
#include <span>

#include "ir/graph.h"

namespace plugrad {

/// Constant bits (graph.h) of `op` on constant nodes `sources`; nothing if the op's definition
/// leaves the value open: fused multiply-add of 16-bit floats and ops that are not ALU ops.
/// Integers wrap; floats are rounded once to `dtype`.
std::optional<uint64_t> fold(const Graph& g, Op op, DType dtype, std::span<const Id> sources);

/// The same of integer values, without rounding them to `dtype`; nothing for comparisons.
std::optional<int64_t> fold_int(Op op, DType dtype, int64_t a, int64_t b);

/// As Graph::add, but an op whose sources are all constants becomes a constant.
Id add_folded(Graph& g, Op op, DType dtype, std::span<const Id> sources, uint64_t arg = 0);
inline Id add_folded(Graph& g, Op op, DType dtype, std::initializer_list<Id> sources) {
  return add_folded(g, op, dtype, std::span<const Id>(sources.begin(), sources.size()));
}

// Integer division as the ops define it, dividing by zero included.
int64_t floor_div(int64_t a, int64_t b);
int64_t floor_mod(int64_t a, int64_t b);
int64_t truncated_div(int64_t a, int64_t b);
int64_t truncated_mod(int64_t a, int64_t b);

}  // namespace plugrad
