// Parses index expressions for reads (index.cpp) and assignments (setitem.cpp), and reads at
// indices that are data (gather.cpp).
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/internal.h"
#include "plugrad/tensor.h"
#include "tensor/sizes/variable_slice.h"

namespace plugrad::tensor {

/// Start, count and step of a slice, clipped to an axis.
struct Range {
  int64_t start = 0, count = 1, step = 1;
};
/// Of a slice without tensors.
Range resolve_slice(const Slice& slice, int64_t size);

/// A slice with a variable bound.
struct VariableEntry {
  std::shared_ptr<SizeArithmetic> sizes;  // that knows the numbers of the range
  VariableRange range;
};

/// One entry of a checked index expression. Ellipses and missing axes have become slices, lists
/// tensors.
struct IndexEntry {
  Index::Kind kind;     // Number, Slice, NewAxis or Tensor
  Range range = {};     // of a number or slice; the whole axis for a tensor
  Tensor indices = {};  // non-negative integers; for a number counted from the end of
                        // a variable size, its only index
  std::optional<VariableEntry> variable = {};  // then range.count is the largest one
};
/// Errors: User for too many indices, indices known to be out of range, dtypes that are no
/// integers.
std::vector<IndexEntry> resolve_indices(const Tensor& x, const std::vector<Index>& indices);

/// Whether an index of the axis is in the range; undefined if all are.
Tensor reached(const Range& range, int64_t size, int64_t rank, int64_t axis);

/// Applies the entries that are movement. Axes of tensor entries stay whole.
Tensor read_ranges(const Tensor& x, const std::vector<IndexEntry>& entries);

/// Applies the entries that are tensors to the result of read_ranges.
class TensorIndex {
 public:
  TensorIndex(const Tensor& x, const std::vector<IndexEntry>& entries);
  bool is_empty() const { return axes_.empty(); }
  Tensor read() const;                        ///< (lead…, indices…, tail…)
  Tensor written(const Tensor& value) const;  ///< x after the assignment

 private:
  Tensor rows() const;  // x as (lead…, merged indexed axes, tail…)
  Tensor x_;
  std::vector<int64_t> axes_, order_;
  std::vector<Tensor> indices_;
  Shape chosen_;    // common shape of the indices
  int64_t at_ = 0;  // axis at which it is inserted
  // index into the merged axis; whether it is in range (undefined: see select)
  Tensor flat_, valid_;
};

/// The position of no index: the lowest i32, so that it is the identity of a maximum over the
/// positions that match.
inline constexpr int32_t kNoIndex = std::numeric_limits<int32_t>::min();

/// Errors: User unless integers.
void require_indices(std::string_view function, const Tensor& indices);
/// `indices`, checked against an axis of `size` (in_range in tensor/index/check_indices.h);
/// negative ones count from its end.
Tensor indices_of(std::string_view function, const Tensor& indices, int64_t size);
/// As i32, or as i64 if i32 does not hold all values of the dtype.
Tensor as_signed(const Tensor& indices);
/// Indices of an axis of x as i32 or i64, with negative ones converted to count from the front.
Tensor wrapped_indices(const Tensor& indices, const Tensor& x, int64_t axis);
/// Elements of an axis at `indices` (i32 or i64), whose axes replace it. Indices out of
/// range read 0.
PLUGRAD_INTERNAL Tensor select(const Tensor& x, int64_t axis, const Tensor& indices);
/// x with `after` zeros behind an axis, as a view: what is written to its other elements goes to x.
Tensor padded_view(const Tensor& x, int64_t axis, int64_t after);
/// 0 to count - 1 along `axis`, with size 1 in the other axes of `rank`.
Tensor counter(int64_t count, int64_t rank, int64_t axis);

}  // namespace plugrad::tensor
