// Turns scatter into a masked reduction: each element of the result reduces the values whose index
// names it. The scheduler decides whether a kernel loops over all indices for each element, or
// stores the values by index.
#include "plugrad/functional.h"
#include "tensor/compute_dtype.h"
#include "tensor/index/index.h"
#include "tensor/lazy_text.h"
#include "tensor/named_function.h"
#include "tensor/record.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad {

using tensor::checked_axis;

namespace {

/// scatter with its arguments checked.
struct Hits {
  Tensor x;  // like the others, at its largest sizes
  int64_t axis;
  Tensor hit;     // (…, size of the axis, …, indices): whether the index names the element
  Tensor values;  // (…, 1, …, indices)
  Shape missing;  // elements of each axis that no index reaches
};

Tensor last_axis(const Tensor& x, int64_t axis) {
  return x.unsqueeze(-1).transpose(axis, -1);
}

void require_values(std::string_view function, const Tensor& x, const Tensor& indices,
                    const Tensor& values) {
  require_type(is_float(x.dtype()) || !is_float(values.dtype()),
               "[{}] {} values into a {} tensor; cast them first", function,
               name_of(values.dtype()), name_of(x.dtype()));
  require(values.ndim() == 0 || values.ndim() == indices.ndim(),
          "[{}] values {} and indices {} have different numbers of axes", function,
          tensor::lazy_text(values), tensor::lazy_text(indices));
  for (int64_t i = 0; i < values.ndim(); ++i) {
    require(indices.size(i) <= values.size(i), "[{}] indices {} are larger than values {} along {}",
            function, tensor::lazy_text(indices), tensor::lazy_text(values), i);
    tensor::require_inside(function, indices, values, i);
  }
}

Hits find_hits(std::string_view function, const Tensor& x, int64_t axis, const Tensor& indices,
               const Tensor& values) {
  tensor::require_indices(function, indices);
  const Shape to = x.shape(), rows = indices.shape();
  require(to.size() == rows.size(), "[{}] indices {} and {} have different numbers of axes",
          function, tensor::lazy_text(rows), tensor::lazy_text(to));
  const int64_t at = checked_axis(function, axis, x.ndim());
  const Tensor inside = tensor::indices_of(function, indices, to[static_cast<size_t>(at)]);
  require_values(function, x, indices, values);
  std::vector<Part> box;
  Shape missing;
  for (size_t i = 0; i < to.size(); ++i) {
    const bool along = static_cast<int64_t>(i) == at;
    require(along || rows[i] <= to[i], "[{}] indices {} are larger than {} along axis {}", function,
            tensor::lazy_text(rows), tensor::lazy_text(to), i);
    if (!along) tensor::require_inside(function, indices, x, static_cast<int64_t>(i));
    missing.push_back(along ? 0 : to[i] - rows[i]);
    box.push_back(Part(0, rows[i]));
  }
  const int64_t size = x.size(at);
  // Indices beyond a variable size name nothing.
  const Tensor wrapped = tensor::whole(tensor::wrapped_indices(inside, x, at), -1);
  const Tensor hit = last_axis(wrapped, at) == tensor::counter(size, x.ndim() + 1, at);
  const Tensor all = tensor::whole(values.cast(x.dtype()), 0);
  return {tensor::whole(x, 0), at, hit, values.ndim() == 0 ? all : last_axis(all.shrink(box), at),
          missing};
}

/// Pads to the shape of x.
Tensor whole_result(const Hits& h, const Tensor& part) {
  std::vector<std::pair<int64_t, int64_t>> pads;
  for (int64_t n : h.missing) pads.emplace_back(0, n);
  return part.pad(pads);
}

/// The position of the last index that names the element; negative if there is none.
Tensor last_index(const Hits& h) {
  const Tensor number = tensor::counter(h.hit.size(-1), h.hit.ndim(), h.hit.ndim() - 1);
  return plugrad::where(h.hit, number, tensor::kNoIndex).max(-1);
}

Tensor is_hit(const Hits& h) {
  return whole_result(h, last_index(h) >= 0);
}

Tensor replace(const Hits& h) {
  if (h.values.ndim() == 0) return plugrad::where(is_hit(h), h.values, h.x);
  const Tensor last = last_index(h),
               rows = whole_result(h, h.values.transpose(h.axis, -1).squeeze(-1));
  return plugrad::where(whole_result(h, last >= 0),
                        rows.gather(h.axis, whole_result(h, last.maximum(0))), h.x);
}

Tensor average(const Tensor& sum, const Tensor& count) {
  return is_float(sum.dtype()) ? sum / count.cast(sum.dtype()) : sum.floor_div(count);
}

/// Combines the values of each element, in the accumulation dtype.
Tensor combine(const Hits& h, Combine how, bool include_self) {
  const DType dtype = h.x.dtype();
  const DType sum_dtype =
      is_float(dtype) && size_of(dtype) < 4 ? DType::F32 : tensor::narrow_sum_dtype(dtype);
  const Tensor x = h.x.cast(sum_dtype), values = h.values.cast(sum_dtype);
  const auto of_hits = [&](const Tensor& otherwise) {
    return plugrad::where(h.hit, values, otherwise);
  };
  if (how == Combine::Prod) {
    const Tensor product = whole_result(h, of_hits(1).prod(-1, false, sum_dtype));
    return include_self ? x * product : product;
  }
  if (how == Combine::Max) {
    const Tensor top = whole_result(h, of_hits(tensor::lowest(sum_dtype)).max(-1));
    return include_self ? x.maximum(top) : top;
  }
  Tensor sum = whole_result(h, of_hits(0).sum(-1, false, sum_dtype));
  if (include_self) sum = x + sum;
  if (how == Combine::Sum) return sum;
  const Tensor count = whole_result(h, h.hit.sum(-1, false, DType::I32)) + (include_self ? 1 : 0);
  return average(sum, count.maximum(1));
}

}  // namespace

Tensor Tensor::scatter(int64_t axis, const Tensor& indices, const Tensor& values,
                       Combine how) const {
  return scatter_reduce(axis, indices, values, how);
}

Tensor Tensor::scatter_reduce(int64_t axis, const Tensor& indices, const Tensor& values,
                              Combine how, bool include_self) const {
  const std::string_view function = how == Combine::Replace ? "scatter" : "scatter_reduce";
  const tensor::NamedFunction name(function);
  if (ndim() == 0)
    return unsqueeze(0)
        .scatter_reduce(0, indices.reshape({1}), values.reshape({1}), how, include_self)
        .squeeze();
  if (how == Combine::Min) {  // minimum = maximum of the values in reversed order
    const auto opposite = [](const Tensor& t) {
      return t.dtype() == DType::Bool ? !t : is_float(t.dtype()) ? -t : ~t;
    };
    const Tensor given = is_float(values.dtype()) ? values : values.cast(dtype());
    return opposite(
        opposite(*this).scatter_reduce(axis, indices, opposite(given), Combine::Max, include_self));
  }
  const Hits hits = find_hits(function, *this, axis, indices, values);
  if (how == Combine::Replace) return tensor::limited_as(replace(hits), *this);
  const Tensor combined = combine(hits, how, include_self);
  return tensor::limited_as(plugrad::where(is_hit(hits), combined.cast(dtype()), hits.x), *this);
}

}  // namespace plugrad
