// Rule tables of what a device lacks: each row makes an op that the device does not claim of ops
// that it may claim. What becomes of which dtype: docs/accuracy.md.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/claims.h"
#include "rewrite/rewrite.h"

namespace plugrad::codegen {

/// Context of every rule of this folder: what the device claims, and which small floats are known
/// as f32.
class Lowering {
 public:
  explicit Lowering(const pgr_device_caps& caps) : caps_(caps) {}

  bool has(Op op, DType dtype) const { return claims(caps_, op, dtype); }
  /// 64-bit integers are cast as they are: linearise splits them.
  bool casts(DType dtype) const { return has(Op::Cast, dtype) || is_64_bit_integer(dtype); }
  /// Accumulators are memory. A maximum that is no op is a choice, which linearise writes.
  bool reduces(Op op, DType dtype) const;
  /// The dtype that stands in memory for `dtype`; Void for none.
  DType stored(DType dtype) const;
  /// The dtype of the same size by way of which one that cannot be cast is cast; Void for none.
  DType castable_sibling(DType dtype) const;

  /// `small` is the f32 `wide`, which it holds exactly.
  void note_exact(Id small, Id wide);
  /// The f32 of the value of `small`, kNoId when none was noted.
  Id exact(Id small);
  /// Whose results note_exact is about; none in a test of one rule.
  void follow(const Rewriter& rewriter) { rewriter_ = &rewriter; }

 private:
  const pgr_device_caps& caps_;
  const Rewriter* rewriter_ = nullptr;
  std::unordered_map<Id, Id> exact_;
  std::vector<std::pair<Id, Id>> pending_;  // noted, and not rewritten yet
};

/// The dtype that an op computes with: of comparisons that of the operands.
inline DType operand_dtype(const Graph& g, const Node& n) {
  return is_compare(n.op) ? g[n.src[0]].dtype : n.dtype;
}
inline bool is_small_float(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 || dtype == DType::F8E4M3 ||
         dtype == DType::F8E5M2;
}
inline bool is_small_integer(DType dtype) {
  return is_integer(dtype) && size_of(dtype) < 4 && size_of(dtype) > 0;
}

// Guards of the rows.
bool lacks_op(const Graph& g, const Match& m);             // on the root's operands
bool lacks_op_beside_add(const Graph& g, const Match& m);  // and adds floats of that dtype
bool lacks_cast(const Graph& g, const Match& m);           // between these dtypes
bool lacks_source_cast(const Graph& g, const Match& m);    // from the source's dtype
bool lacks_result_cast(const Graph& g,
                       const Match& m);  // to the root's, but casts from the source's
bool lacks_reduce(const Graph& g, const Match& m);

// One table a file. Rows are tried in this order.
std::span<const Rule> memory_rules();
std::span<const Rule> bool_rules();
std::span<const Rule> narrow_rules();
std::span<const Rule> u32_rules();
std::span<const Rule> small_float_rules();
std::span<const Rule> small_integer_rules();
std::span<const Rule> basic_rules();
std::span<const Rule> division_rules();
std::span<const Rule> transcendental_rules();

/// All of them.
const RuleTable& lowering_table();

/// Errors: Unsupported when the device does not claim what the node does, 64-bit integers excepted.
void check_claimed(const Graph& g, Id id, const Lowering& device);

}  // namespace plugrad::codegen
