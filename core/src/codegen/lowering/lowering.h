// Decomposition: rule tables that replace ops that the device does not claim by ops that it may
// claim. docs/accuracy.md lists them by dtype.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/kernel.h"
#include "rewrite/rewrite.h"

namespace plugrad::codegen {

/// Context of the rules: the device's claims and the small floats whose f32 value is known.
class Lowering {
 public:
  explicit Lowering(const pgr_device_caps& caps) : caps_(caps) {}

  bool has(Op op, DType dtype) const { return claims(caps_, op, dtype); }
  /// 64-bit integers count as cast: emulate_int64 removes them later.
  bool casts(DType dtype) const { return has(Op::Cast, dtype) || is_64_bit_integer(dtype); }
  /// Accumulators are stored in memory. linearise writes a maximum that the device lacks as a
  /// select.
  bool reduces(Op op, DType dtype) const;
  /// The dtype that stores `dtype` in memory; Void for none.
  DType stored(DType dtype) const;
  /// The dtype of the same size through which `dtype` is cast; Void for none.
  DType castable_sibling(DType dtype) const;

  /// Notes that `small` holds exactly the value of the f32 `wide`.
  void record_exact(Id small, Id wide);
  /// The f32 noted for `small`; kNoId for none.
  Id exact(Id small);
  /// The rewriter whose results exact() resolves; not set in tests of single rules.
  void follow(const Rewriter& rewriter) { rewriter_ = &rewriter; }

 private:
  const pgr_device_caps& caps_;
  const Rewriter* rewriter_ = nullptr;
  std::unordered_map<Id, Id> exact_;
  std::vector<std::pair<Id, Id>> pending_;  // noted and not yet rewritten
};

/// The dtype that an op computes in; of a comparison the operands'.
inline DType operand_dtype(const Graph& g, const Node& n) {
  return is_compare(n.op) ? g[n.src[0]].dtype : n.dtype;
}
inline bool is_small_float(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 || dtype == DType::F8E4M3 ||
         dtype == DType::F8E5M2;
}

// Conditions of rules: what the device lacks.
bool lacks_op(const Graph& g, const Match& m);  // the op, for the operands' dtype
// The op, although it adds floats of that dtype.
bool lacks_op_beside_add(const Graph& g, const Match& m);
bool lacks_cast(const Graph& g, const Match& m);         // a cast from or to these dtypes
bool lacks_source_cast(const Graph& g, const Match& m);  // casts from the source's dtype
bool lacks_result_cast(const Graph& g,
                       const Match& m);  // casts to the root's dtype, but not from the source's
bool lacks_reduce(const Graph& g, const Match& m);

/// Whether the device computes with integers of the size of this float, which series need.
bool has_words(const Lowering& device, DType dtype);

// Rules are tried in this order.
std::span<const Rule> memory_rules();
std::span<const Rule> bool_rules();
std::span<const Rule> narrow_rules();
std::span<const Rule> u32_rules();
std::span<const Rule> small_float_rules();
std::span<const Rule> small_integer_rules();
std::span<const Rule> basic_rules();
std::span<const Rule> division_rules();
std::span<const Rule> exponential_rules();
std::span<const Rule> trigonometric_rules();

/// All tables together.
const RuleTable& lowering_table();

}  // namespace plugrad::codegen
