// Turns reads at indices that are data into a comparison and a sum, which the rewriter turns into
// one load.
//   x[rows]  =  sum over r of where(rows == r, x[r], -0)  =  load(x, rows), 0 <= rows < size
// Terms of -0 change no sum, so that an element -0 keeps its sign; integers have 0.
#include <algorithm>
#include <numeric>

#include "plugrad/functional.h"
#include "tensor/index/check_indices.h"
#include "tensor/index/index.h"
#include "tensor/lazy_text.h"
#include "tensor/named_function.h"
#include "tensor/record.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad {

namespace tensor {

Tensor counter(int64_t count, int64_t rank, int64_t axis) {
  Shape shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = count;
  return Tensor::arange(count).reshape(shape);
}

void require_indices(std::string_view function, const Tensor& indices) {
  require_type(is_integer(indices.dtype()), "[{}] indices are {}, not integers; cast them",
               function, name_of(indices.dtype()));
}

Tensor indices_of(std::string_view function, const Tensor& indices, int64_t size) {
  require_indices(function, indices);
  return in_range(function, "index", indices, -size, size);
}

Tensor as_signed(const Tensor& indices) {
  const DType dtype = indices.dtype();
  return indices.cast(size_of(dtype) == 8 || dtype == DType::U32 ? DType::I64 : DType::I32);
}

namespace {

/// Sum over `axis` of x where hit. At most one element is hit, so that the sum is exact.
Tensor pick(const Tensor& hit, const Tensor& x, int64_t axis) {
  const Tensor values = x.dtype() == DType::Bool ? x.cast(DType::U8) : x;
  const Tensor none = is_float(x.dtype()) ? Tensor(-0.0) : Tensor(0);
  return where(hit, values, none).sum(axis, false, narrow_sum_dtype(x.dtype())).cast(x.dtype());
}

}  // namespace

Tensor wrapped_indices(const Tensor& indices, const Tensor& x, int64_t axis) {
  const Tensor p = as_signed(indices);
  return is_unsigned(indices.dtype()) ? p : where(p < 0, p + axis_size(x, axis).count, p);
}

namespace {

/// select() for variable sizes: indices beyond the size of `indices` name nothing, and elements
/// beyond the size of x read 0.
Tensor select_variable(const Tensor& x, int64_t axis, const Tensor& indices) {
  Tensor y = select(whole(x, 0), axis, whole(indices, -1));
  int64_t to = 0;
  for (int64_t from = 0; from < x.ndim(); ++from) {
    if (from != axis) {
      y = limited(y, to++, axis_size(x, from));
      continue;
    }
    for (int64_t i = 0; i < indices.ndim(); ++i) y = limited(y, to++, axis_size(indices, i));
  }
  return y;
}

}  // namespace

Tensor select(const Tensor& x, int64_t axis, const Tensor& indices) {
  if (has_variable_size(x) || has_variable_size(indices)) return select_variable(x, axis, indices);
  const auto at = static_cast<size_t>(axis);
  const Shape from = x.shape(), chosen = indices.shape();
  Shape to(from.begin(), from.begin() + axis);
  const int64_t lead = element_count(to), rows = from[at], count = element_count(chosen);
  to.insert(to.end(), chosen.begin(), chosen.end());
  to.insert(to.end(), from.begin() + axis + 1, from.end());
  // An empty read must depend on x, so that its gradient is zeros.
  if (x.numel() == 0) return x.flatten().sum().cast(x.dtype()).expand(to);
  if (element_count(to) == 0) return x.flatten().shrink({{0, 0}}).reshape(to);
  const Tensor hit = indices.reshape({count, 1, 1}) == counter(rows, 3, 1);
  return pick(hit, x.reshape({lead, 1, rows, -1}), 2).reshape(to);
}

}  // namespace tensor

using tensor::checked_axis;

Tensor Tensor::index_select(int64_t axis, const Tensor& indices) const {
  const tensor::NamedFunction named("index_select");
  const int64_t at = checked_axis("index_select", axis, ndim());
  const Tensor inside = tensor::indices_of("index_select", indices, size(at));
  return tensor::select(*this, at, tensor::wrapped_indices(inside, *this, at));
}

namespace {

/// gather for indices that are not negative, and fixed sizes.
Tensor gathered(const Tensor& x, int64_t axis, const Tensor& indices) {
  const int64_t size = x.size(axis);
  // The indexed axis of x becomes the last one; the axes of the indices keep their order.
  return tensor::pick(indices.unsqueeze(-1) == Tensor::arange(size),
                      x.unsqueeze(-1).transpose(axis, -1), -1);
}

}  // namespace

Tensor Tensor::gather(int64_t axis, const Tensor& indices) const {
  const tensor::NamedFunction name("gather");
  tensor::require_indices("gather", indices);
  const Shape from = shape(), chosen = indices.shape();
  require(from.size() == chosen.size(), "[gather] indices {} and {} have different numbers of axes",
          tensor::lazy_text(chosen), tensor::lazy_text(from));
  if (from.empty()) return unsqueeze(0).gather(0, indices.unsqueeze(0)).squeeze();
  const auto at = static_cast<size_t>(checked_axis("gather", axis, ndim()));
  const Tensor inside = tensor::indices_of("gather", indices, from[at]);
  std::vector<Part> box(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    require(i == at || chosen[i] <= from[i], "[gather] indices {} are larger than {} along axis {}",
            tensor::lazy_text(chosen), tensor::lazy_text(from), i);
    if (i == at) continue;
    box[i] = {0, chosen[i]};
    tensor::require_inside("gather", indices, *this, static_cast<int64_t>(i));
  }
  const Tensor wrapped = tensor::wrapped_indices(inside, *this, static_cast<int64_t>(at));
  const Tensor y = gathered(tensor::whole(*this, 0).shrink(box), static_cast<int64_t>(at),
                            tensor::whole(wrapped, -1));
  return tensor::limited_as(y, indices);
}

Tensor Tensor::one_hot(int64_t classes) const {
  tensor::require_indices("one_hot", *this);
  require(classes >= 0, "[one_hot] the number of classes is {}", classes);
  const Tensor inside = tensor::in_range("one_hot", "index", *this, 0, classes);
  return (tensor::as_signed(inside).unsqueeze(-1) == arange(classes)).cast(DType::I32);
}

Tensor embedding(const Tensor& table, const Tensor& indices) {
  const tensor::NamedFunction named("embedding");
  require(table.ndim() == 2, "[embedding] the table has shape {}, not (rows, width)",
          tensor::lazy_text(table));
  tensor::require_indices("embedding", indices);
  const Tensor inside = tensor::in_range("embedding", "index", indices, 0, table.size(0));
  return tensor::select(table, 0, tensor::as_signed(inside));
}

}  // namespace plugrad
