// The form in which schedule passes a kernel to codegen; verify_kernel_ast checks it.
#pragma once

#include "ir/graph.h"

namespace plugrad {

/// A kernel before codegen: a graph of its own with one Sink root over Stores. Identical kernels of
/// a plan (and across plans, by hash) are one object.
///
///   Sink(Store…)            one kernel; every Store has its own output loops or shares them
///   Store(param, index, value[, gate])
///                           runs for every combination of the Loop ranges that its index, value or
///                           gate mention; each element is written once
///   Load(param, index[, gate, alt])
///                           arg 0. If the gate is false nothing is read, the index is arbitrary
///                           and the value is alt, a constant
///   Bounded(index, limit)   list: none. Bool, a gate of Stores: index < limit, or always true, as
///                           elements beyond the limit are never read
///   Param                   dtype of an element; list: slot, PGR_PARAM_BUFFER, elem_count, flags
///   Scalar                  list: number, upper bound of an Index, 1 for the negative. Given at
///                           launch; numbered from 0 (Step::scalars)
///   Range(size[, begin, end])
///                           arg: axis number and kind, Loop or Reduce (ir/range.h); axis numbers
///                           are unique in the kernel and ascend from the outermost output axis
///   Reduce(value, range…)   list: op. Closes its Reduce ranges, which appear nowhere outside it.
///                           Reduces of which neither contains the other may close the same ranges:
///                           they share loops
///   Keep(value)             list: number, blocks. compute_at: the value is worth computing once in
///                           an iteration of one loop, and again in each iteration of another.
///                           Marks with the same number are one function of the loops. blocks 1:
///                           rows of an operand of a product, a few at a time; the only mark of
///                           its number
///   Const, ALU ops, Cast, Bitcast, Where, FloorDiv, FloorMod
///
/// Indices are element offsets of dtype Index (row-major in the stored shape), built of Range,
/// Scalar, Index constants, Add, Mul, FloorDiv, FloorMod, and Loads cast to Index. Conditions are
/// Bool: CmpLt, CmpEq, CmpNe, And, Or, Xor. A Range may also be cast to a stored dtype as a value.
/// Reductions of f16 and bf16 already accumulate in f32.
struct KernelAst {
  Graph graph;
  Id sink = kNoId;
  uint64_t hash[2] = {};     // hash of the structure, independent of ids
  uint32_t param_count = 0;  // Params are numbered 0 … param_count - 1, written ones first
  bool is_exact = false;     // forbids fused multiply-adds, whatever the settings
};

/// Follows the op in the list of a Reduce whose value is where(range == index, term, identity), for
/// an output range and an index that depends on the closed ranges, and which is all that a Store
/// stores. Codegen then stores each term by its index (codegen/passes/eliminate_reductions.cpp).
inline constexpr int64_t kIndexed = 1;

/// A parameter flag: one buffer may be bound to this parameter and to another with this flag.
/// Plugins see such a parameter without NO_ALIAS.
inline constexpr uint32_t kParamShared = 1u << 31;

struct ParamInfo {
  uint32_t slot;
  int64_t elem_count;
  uint32_t flags;  // PGR_PARAM_READ, PGR_PARAM_WRITE, PGR_PARAM_NO_ALIAS
};
inline ParamInfo param_info(const Graph& g, Id param) {
  const auto list = g.arg_list(param);
  return {static_cast<uint32_t>(list[0]), list[2], static_cast<uint32_t>(list[3])};
}
inline Id make_param(Graph& g, DType dtype, const ParamInfo& info) {
  const ListId list = g.list({static_cast<int64_t>(info.slot), 0 /* PGR_PARAM_BUFFER */,
                              info.elem_count, static_cast<int64_t>(info.flags)});
  return g.add(Op::Param, dtype, {}, list);
}

inline Id make_scalar(Graph& g, uint32_t number, int64_t most) {
  return g.add(Op::Scalar, DType::Index, {}, g.list({static_cast<int64_t>(number), most, 0}));
}
inline Id make_scalar(Graph& g, uint32_t number, DType dtype, bool is_negated = false) {
  return g.add(Op::Scalar, dtype, {},
               g.list({static_cast<int64_t>(number), 0, int64_t{is_negated}}));
}
inline uint32_t scalar_number(const Graph& g, Id scalar) {
  return static_cast<uint32_t>(g.arg_list(scalar)[0]);
}
/// The dtype in which a launch gives a Scalar: floats of 16 bits or fewer as f32.
inline DType launch_dtype(DType dtype) {
  if (dtype == DType::Index) return DType::I32;
  return is_float(dtype) && size_of(dtype) < 4 ? DType::F32 : dtype;
}
inline bool is_negated(const Graph& g, Id scalar) {
  return g.arg_list(scalar)[2] != 0;
}

struct KeepMark {
  int64_t number;
  bool in_blocks;
};
inline KeepMark keep_mark(const Graph& g, Id keep) {
  return {g.arg_list(keep)[0], g.arg_list(keep)[1] != 0};
}
inline Id make_keep(Graph& g, Id value, const KeepMark& mark) {
  const ListId list = g.list({mark.number, int64_t{mark.in_blocks}});
  return g.add(Op::Keep, g[value].dtype, {value}, list);
}

}  // namespace plugrad
