// Products of tensors that are a matrix product after a change of shape.
#include <algorithm>
#include <numeric>

#include "plugrad/linalg.h"
#include "tensor/lazy_text.h"
#include "tensor/record.h"

namespace plugrad {

Tensor outer(const Tensor& a, const Tensor& b) {
  const tensor::NamedFunction named("outer");
  require(a.ndim() == 1 && b.ndim() == 1, "[outer] {} and {} are not two vectors",
          tensor::lazy_text(a), tensor::lazy_text(b));
  return a.unsqueeze(1) * b;
}

Tensor inner(const Tensor& a, const Tensor& b) {
  const tensor::NamedFunction named("inner");
  if (a.ndim() == 0 || b.ndim() == 0) return a * b;
  require(a.size(-1) == b.size(-1), "[inner] the last axes of {} and {} differ",
          tensor::lazy_text(a), tensor::lazy_text(b));
  return tensordot(a, b, {-1}, {-1});
}

Tensor tensordot(const Tensor& a, const Tensor& b, int64_t axes) {
  require(axes >= 0 && axes <= a.ndim() && axes <= b.ndim(), "[tensordot] {} axes of {} and {}",
          axes, tensor::lazy_text(a), tensor::lazy_text(b));
  std::vector<int64_t> of_a(static_cast<size_t>(axes)), of_b(of_a);
  std::iota(of_a.begin(), of_a.end(), a.ndim() - axes);
  std::iota(of_b.begin(), of_b.end(), 0);
  return tensordot(a, b, of_a, of_b);
}

Tensor tensordot(const Tensor& a, const Tensor& b, const std::vector<int64_t>& axes_a,
                 const std::vector<int64_t>& axes_b) {
  const tensor::NamedFunction named("tensordot");
  require(axes_a.size() == axes_b.size(), "[tensordot] {} axes of {} and {} of {}", axes_a.size(),
          tensor::lazy_text(a), axes_b.size(), tensor::lazy_text(b));
  // Matrices of (other axes, summed axes).
  int64_t inner = 1;
  Shape outer;
  const auto matrix = [&](const Tensor& x, const std::vector<int64_t>& given) {
    std::vector<int64_t> summed, order;
    for (int64_t axis : given) summed.push_back(tensor::checked_axis("tensordot", axis, x.ndim()));
    tensor::checked_axes("tensordot", given, x.ndim());
    inner = 1;
    for (int64_t i = 0; i < x.ndim(); ++i)
      if (std::ranges::find(summed, i) == summed.end()) {
        order.push_back(i);
        outer.push_back(x.size(i));
      }
    int64_t rows = 1;
    for (int64_t i : order) rows *= x.size(i);
    for (int64_t i : summed) inner *= x.size(i);
    order.insert(order.end(), summed.begin(), summed.end());
    return x.permute(order).reshape({rows, inner});
  };
  for (size_t i = 0; i < axes_a.size(); ++i)
    require(a.size(axes_a[i]) == b.size(axes_b[i]), "[tensordot] axis {} of {} and {} of {} differ",
            axes_a[i], tensor::lazy_text(a), axes_b[i], tensor::lazy_text(b));
  const Tensor left = matrix(a, axes_a), right = matrix(b, axes_b);
  return left.matmul(right.transpose()).reshape(outer);
}

}  // namespace plugrad
