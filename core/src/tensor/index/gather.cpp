// Turns reads at indices that are data into a comparison and a sum, which the rewriter turns into
// one load.
//   x[rows]  =  sum over r of where(rows == r, x[r], 0)  =  load(x, rows), 0 <= rows < size
#include <algorithm>
#include <numeric>

#include "plugrad/functional.h"
#include "tensor/index/check_indices.h"
#include "tensor/index/index.h"
#include "tensor/record.h"
#include "tensor/variable_sizes.h"

namespace plugrad {

namespace tensor {

Tensor counter(int64_t count, int64_t rank, int64_t axis) {
  Shape shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = count;
  return Tensor::arange(count).reshape(shape);
}

void require_places(std::string_view function, const Tensor& places) {
  require(is_integer(places.dtype()), "[{}] places are {}, not integers; cast them", function,
          name_of(places.dtype()));
}

Tensor places_of(std::string_view function, const Tensor& places, int64_t size) {
  require_places(function, places);
  return in_range(function, "place", places, -size, size);
}

Tensor wide(const Tensor& places) {
  const DType dtype = places.dtype();
  return places.cast(size_of(dtype) == 8 || dtype == DType::U32 ? DType::I64 : DType::I32);
}

namespace {

/// Sum over `axis` of x where hit. At most one element is hit, so that the sum is exact.
Tensor pick(const Tensor& hit, const Tensor& x, int64_t axis) {
  const Tensor values = x.dtype() == DType::Bool ? x.cast(DType::U8) : x;
  return where(hit, values, 0).sum(axis, false, narrow_sum_dtype(x.dtype())).cast(x.dtype());
}

}  // namespace

Tensor wrapped_places(const Tensor& places, const Tensor& x, int64_t axis) {
  const Tensor p = wide(places);
  return is_unsigned(places.dtype()) ? p : where(p < 0, p + axis_size(x, axis).count, p);
}

namespace {

/// select() for variable sizes: indices beyond the size of `places` name nothing, and elements
/// beyond the size of x read 0.
Tensor select_variable(const Tensor& x, int64_t axis, const Tensor& places) {
  Tensor y = select(whole(x, 0), axis, whole(places, -1));
  int64_t to = 0;
  for (int64_t from = 0; from < x.ndim(); ++from) {
    if (from != axis) {
      y = limited(y, to++, axis_size(x, from));
      continue;
    }
    for (int64_t i = 0; i < places.ndim(); ++i) y = limited(y, to++, axis_size(places, i));
  }
  return y;
}

}  // namespace

Tensor select(const Tensor& x, int64_t axis, const Tensor& places) {
  if (has_variable_size(x) || has_variable_size(places)) return select_variable(x, axis, places);
  const auto at = static_cast<size_t>(axis);
  const Shape from = x.shape(), chosen = places.shape();
  Shape to(from.begin(), from.begin() + axis);
  const int64_t lead = element_count(to), rows = from[at], count = element_count(chosen);
  to.insert(to.end(), chosen.begin(), chosen.end());
  to.insert(to.end(), from.begin() + axis + 1, from.end());
  // An empty read must depend on x, so that its gradient is zeros.
  if (x.numel() == 0) return x.flatten().sum().cast(x.dtype()).expand(to);
  if (element_count(to) == 0) return x.flatten().shrink({{0, 0}}).reshape(to);
  const Tensor hit = places.reshape({count, 1, 1}) == counter(rows, 3, 1);
  return pick(hit, x.reshape({lead, 1, rows, -1}), 2).reshape(to);
}

}  // namespace tensor

using tensor::checked_axis;

Tensor Tensor::index_select(int64_t axis, const Tensor& places) const {
  const int64_t at = checked_axis("index_select", axis, ndim());
  const Tensor inside = tensor::places_of("index_select", places, size(at));
  return tensor::select(*this, at, tensor::wrapped_places(inside, *this, at));
}

namespace {

/// gather for indices that are not negative, and fixed sizes.
Tensor gathered(const Tensor& x, int64_t axis, const Tensor& places) {
  const int64_t size = x.size(axis);
  // The indexed axis of x becomes the last one; the axes of the indices keep their order.
  return tensor::pick(places.unsqueeze(-1) == Tensor::arange(size),
                      x.unsqueeze(-1).transpose(axis, -1), -1);
}

}  // namespace

Tensor Tensor::gather(int64_t axis, const Tensor& places) const {
  tensor::require_places("gather", places);
  const Shape from = shape(), chosen = places.shape();
  require(from.size() == chosen.size(), "[gather] places {} and {} have different numbers of axes",
          to_string(chosen), to_string(from));
  if (from.empty()) return unsqueeze(0).gather(0, places.unsqueeze(0)).squeeze();
  const auto at = static_cast<size_t>(checked_axis("gather", axis, ndim()));
  const Tensor inside = tensor::places_of("gather", places, from[at]);
  std::vector<Part> box(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    require(i == at || chosen[i] <= from[i], "[gather] places {} are larger than {} along axis {}",
            to_string(chosen), to_string(from), i);
    if (i == at) continue;
    box[i] = {0, chosen[i]};
    tensor::require_inside("gather", places, *this, static_cast<int64_t>(i));
  }
  const Tensor wrapped = tensor::wrapped_places(inside, *this, static_cast<int64_t>(at));
  const Tensor y = gathered(tensor::whole(*this, 0).shrink(box), static_cast<int64_t>(at),
                            tensor::whole(wrapped, -1));
  return tensor::limited_as(y, places);
}

Tensor Tensor::one_hot(int64_t classes) const {
  tensor::require_places("one_hot", *this);
  require(classes >= 0, "[one_hot] the number of classes is {}", classes);
  const Tensor inside = tensor::in_range("one_hot", "place", *this, 0, classes);
  return (tensor::wide(inside).unsqueeze(-1) == arange(classes)).cast(DType::I32);
}

Tensor embedding(const Tensor& table, const Tensor& places) {
  require(table.ndim() == 2, "[embedding] the table has shape {}, not (rows, width)",
          to_string(table.shape()));
  tensor::require_places("embedding", places);
  const Tensor inside = tensor::in_range("embedding", "place", places, 0, table.size(0));
  return tensor::select(table, 0, tensor::wide(inside));
}

}  // namespace plugrad
