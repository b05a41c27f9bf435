// Index expressions taken apart, for reading (index.cpp) and assigning (setitem.cpp), and reading
// at places that are data (places.cpp).
#pragma once

#include <limits>
#include <string_view>
#include <vector>

#include "plugrad/tensor.h"

namespace plugrad::tensor {

/// Start, count and step of a slice, clipped to an axis.
struct Range {
  int64_t start = 0, count = 1, step = 1;
};
Range resolve_slice(const Slice& slice, int64_t size);

/// One place of an index expression after checking. Ellipsis and open axes have become slices, and
/// lists tensors.
struct IndexEntry {
  Index::Kind kind;    // Number, Slice, NewAxis or Tensor
  Range range = {};    // of numbers, slices and, in full, the axes that tensors index
  Tensor places = {};  // integers, negative ones counted from the front; of a number that counts
                       // from the end of a variable size the one place
};
/// Errors: User for too many indices, places outside that are known, dtypes that are no places.
std::vector<IndexEntry> resolve_indices(const Tensor& x, const std::vector<Index>& indices);

/// The part that is movement; axes that tensors index stay whole.
Tensor read_ranges(const Tensor& x, const std::vector<IndexEntry>& entries);

/// The part that is data: tensors that index axes of what read_ranges gives.
class PlaceIndex {
 public:
  PlaceIndex(const Tensor& x, const std::vector<IndexEntry>& entries);
  bool is_empty() const { return axes_.empty(); }
  Tensor read() const;                        ///< (lead…, places…, tail…)
  Tensor written(const Tensor& value) const;  ///< all of x, after value is put there

 private:
  Tensor rows() const;  // x as (lead…, indexed axes as one, tail…)
  Tensor x_;
  std::vector<int64_t> axes_, order_;
  std::vector<Tensor> places_;
  Shape chosen_;         // of the places
  int64_t at_ = 0;       // where their axes go
  Tensor flat_, valid_;  // place in the one axis; whether all are inside (undefined: see select)
};

/// The number of no place: below all others, so that a maximum of the numbers of those that match
/// begins at it.
inline constexpr int32_t kNoPlace = std::numeric_limits<int32_t>::min();

/// Errors: User unless integers.
void require_places(std::string_view function, const Tensor& places);
/// `places` (see in_range in tensor/index/check_indices.h) of an axis of `size`; negative ones
/// count from its end.
Tensor places_of(std::string_view function, const Tensor& places, int64_t size);
/// As i32, or i64 where i32 does not hold all that the dtype does.
Tensor wide(const Tensor& places);
/// Places of an axis of x as i32 or i64; negative ones counted from the end.
Tensor wrapped_places(const Tensor& places, const Tensor& x, int64_t axis);
/// Elements of an axis at `places` (i32 or i64), whose axes take its place; those outside read 0.
Tensor select(const Tensor& x, int64_t axis, const Tensor& places);
/// The number of each of `count` elements along `axis` of `rank` axes.
Tensor counter(int64_t count, int64_t rank, int64_t axis);

}  // namespace plugrad::tensor
