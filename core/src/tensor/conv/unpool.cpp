// Turns max_unpool into a comparison of indices: each image element is the last pooled element that
// has its index.
#include "plugrad/conv.h"
#include "plugrad/functional.h"
#include "tensor/conv/windows.h"
#include "tensor/index/check_indices.h"
#include "tensor/lazy_text.h"
#include "tensor/named_function.h"

namespace plugrad {

using tensor::each_axis;

namespace {

/// Sizes of the image: the given ones, which pooling must reduce to x, or the smallest such sizes.
Shape unpooled_sizes(std::string_view function, const Tensor& x, int64_t axes,
                     const PerAxis& kernel, const UnpoolOptions& o) {
  const auto n = static_cast<size_t>(axes);
  autodiff::Windows w{
      each_axis(function, "kernel", kernel, n, 1),
      each_axis(function, "stride", o.stride.list().empty() ? kernel : o.stride, n, 1),
      each_axis(function, "dilation", o.dilation, n, 1)};
  const Padding::Sides sides = tensor::sides_of(function, o.padding, w);
  Shape sizes;
  for (size_t i = 0; i < n; ++i) {
    const int64_t count = x.size(static_cast<int64_t>(i) - axes);
    const int64_t usual = (count - 1) * w.stride[i] + w.span(i) - sides[i].first - sides[i].second;
    sizes.push_back(std::max<int64_t>(usual, 0));
  }
  const Shape& given = o.output_size;
  if (given.empty()) return sizes;
  require(given.size() == n, "[{}] output_size {} does not have {} sizes", function,
          tensor::lazy_text(given), n);
  for (size_t i = 0; i < n; ++i)
    require(given[i] > sizes[i] - w.stride[i] && given[i] < sizes[i] + w.stride[i] && given[i] >= 0,
            "[{}] output_size {} is not near {}: pooling it with kernel {} and stride {} does not "
            "give {}",
            function, tensor::lazy_text(given), tensor::lazy_text(sizes),
            tensor::lazy_text(w.kernel), tensor::lazy_text(w.stride), tensor::lazy_text(x));
  return given;
}

Tensor max_unpool(std::string_view function, const Tensor& x, const Tensor& indices, int64_t axes,
                  const PerAxis& kernel, const UnpoolOptions& o) {
  const tensor::NamedFunction named(function);
  require(x.ndim() >= axes, "[{}] shape {} has fewer than {} axes", function, tensor::lazy_text(x),
          axes);
  require_type(is_integer(indices.dtype()), "[{}] indices are {}, not integers", function,
               name_of(indices.dtype()));
  require(indices.shape() == x.shape(), "[{}] indices {} and elements {} differ in shape", function,
          tensor::lazy_text(indices), tensor::lazy_text(x));
  const Shape sizes = unpooled_sizes(function, x, axes, kernel, o);
  int64_t count = 1, pooled = 1;
  for (int64_t size : sizes) count *= size;
  for (int64_t i = -axes; i < 0; ++i) pooled *= x.size(i);
  const Tensor inside = tensor::in_range(function, "index", indices, 0, count);
  Shape flat = x.shape();
  flat.resize(flat.size() - static_cast<size_t>(axes));
  Shape image = flat;
  flat.push_back(pooled);
  image.insert(image.end(), sizes.begin(), sizes.end());
  // (…, index, element): element number, counted from 1, where the element has this index.
  const Tensor hit = inside.reshape(flat).unsqueeze(-2) == Tensor::arange(count).reshape({-1, 1});
  const Tensor number = Tensor::arange(1, pooled + 1);
  const Tensor last = where(hit, number, 0).max(-1, true);
  const Tensor values = where(last == number, x.reshape(flat).unsqueeze(-2), 0);
  return values.sum(-1, false, tensor::narrow_sum_dtype(x.dtype())).cast(x.dtype()).reshape(image);
}

}  // namespace

Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const PerAxis& kernel,
                    const UnpoolOptions& o) {
  return max_unpool("max_unpool1d", x, indices, 1, kernel, o);
}
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const PerAxis& kernel,
                    const UnpoolOptions& o) {
  return max_unpool("max_unpool2d", x, indices, 2, kernel, o);
}
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const PerAxis& kernel,
                    const UnpoolOptions& o) {
  return max_unpool("max_unpool3d", x, indices, 3, kernel, o);
}

}  // namespace plugrad
