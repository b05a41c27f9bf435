// Reductions over axes, and functions composed of them.
#include <cmath>

#include "plugrad/functional.h"
#include "tensor/compute_dtype.h"
#include "tensor/lazy_text.h"
#include "tensor/named_function.h"
#include "tensor/record.h"

namespace plugrad {

using tensor::checked_axes;
using tensor::checked_axis;
using tensor::Recorder;

namespace {

Shape without_axes(const Shape& shape, const std::vector<int64_t>& axes) {
  Shape rest;
  size_t next = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (next < axes.size() && axes[next] == static_cast<int64_t>(i))
      ++next;
    else
      rest.push_back(shape[i]);
  }
  return rest;
}

/// The reduced axes, sorted. A scalar accepts the axes 0 and -1, of size 1.
std::vector<int64_t> reduced_axes(std::string_view function, const Axes& axes, const Shape& shape) {
  const bool imagined = shape.empty() && axes.list().size() == 1;
  std::vector<int64_t> list =
      checked_axes(function, axes, imagined ? 1 : static_cast<int64_t>(shape.size()));
  if (imagined) list.clear();
  return list;
}

/// Adds one Reduce node in `dtype`; none for axes of size 1.
Tensor reduce(std::string_view function, Op op, const Tensor& x, DType dtype, const Axes& axes,
              bool keepdim) {
  Recorder r(function);
  Id node = r.cast(r.use(x), dtype);
  const Shape shape = r.shape(node);
  const std::vector<int64_t> list = reduced_axes(function, axes, shape);
  std::vector<int64_t> arg = {static_cast<int64_t>(op)};
  for (int64_t axis : list)
    if (shape[static_cast<size_t>(axis)] != 1) arg.push_back(axis);
  Graph& g = r.graph();
  if (arg.size() > 1) {
    node = r.masked(node, std::span<const int64_t>(arg).subspan(1), op);
    node = g.add(Op::Reduce, dtype, {node}, g.list(arg));
  }
  if (!keepdim) node = r.reshape(node, without_axes(shape, list));
  return r.done(node);
}

/// The number of elements that are reduced to one.
Tensor reduced_count(std::string_view function, const Tensor& x, const Axes& axes) {
  return tensor::count_along(function, x, reduced_axes(function, axes, x.shape()), x.dtype());
}

/// Reduces in the result dtype; floats below 32 bits accumulate in f32.
Tensor accumulate(std::string_view function, Op op, const Tensor& x, const Axes& axes, bool keepdim,
                  std::optional<DType> wanted) {
  const DType result = tensor::dtype_or(function, wanted, sum_dtype(x.dtype()));
  if (result == DType::Bool) return (x != 0).any(axes, keepdim);
  return reduce(function, op, x, result, axes, keepdim);
}

Tensor mean_in(const Tensor& x, const Axes& axes, bool keepdim) {
  return x.sum(axes, keepdim) / reduced_count("mean", x, axes);
}

/// Variance and mean in the compute dtype. The derivative of the sum of squares with respect to the
/// mean is 0, so first-order gradients skip the mean (`fixed`), which saves a pass over the
/// elements. The last term has the value 0 and restores derivatives of higher order.
std::pair<Tensor, Tensor> moments(std::string_view function, const Tensor& x, const Axes& axes,
                                  bool keepdim, int64_t correction) {
  const Tensor count = reduced_count(function, x, axes);
  const Tensor mean = mean_in(x, axes, true), fixed = mean.detach();
  const Tensor squares = (x - fixed).square().sum(axes, keepdim);
  const Tensor beside = (mean - fixed).square() * count;
  const Tensor degrees = tensor::plus_at_least_0(count, -correction);
  return {(squares - beside.reshape(squares.shape())) / degrees, mean.reshape(squares.shape())};
}

/// sqrt with gradient 0 instead of NaN at 0.
Tensor deviation(const Tensor& variance) {
  const Tensor zero = variance == 0.0;
  return where(zero, 0.0, where(zero, 1.0, variance).sqrt());
}

/// An infinite maximum is not subtracted: inf - inf would be NaN.
Tensor finite_or_zero(const Tensor& x) {
  return where(x.isinf(), 0.0, x);
}

/// x in the requested float dtype.
Tensor as_float(std::string_view function, const Tensor& x, DType wanted) {
  const DType dtype = tensor::dtype_or(function, wanted, wanted);
  require_type(is_float(dtype), "[{}] results are floats, not {}", function, name_of(dtype));
  return x.cast(dtype);
}

/// x in the dtype of its sum.
Tensor in_sum_dtype(const Tensor& x) {
  return x.cast(tensor::compute_dtype(x.dtype()));
}

}  // namespace

Tensor Tensor::sum(const Axes& axes, bool keepdim, std::optional<DType> wanted) const {
  return accumulate("sum", Op::Add, *this, axes, keepdim, wanted);
}

Tensor Tensor::prod(const Axes& axes, bool keepdim, std::optional<DType> wanted) const {
  const tensor::NamedFunction named("prod");
  if (wanted == DType::Bool) return all(axes, keepdim);
  return accumulate("prod", Op::Mul, *this, axes, keepdim, wanted);
}

Tensor Tensor::max(const Axes& axes, bool keepdim) const {
  const tensor::NamedFunction named("max");
  if (dtype() == DType::Bool) return any(axes, keepdim);
  return reduce("max", Op::Max, *this, dtype(), axes, keepdim);
}

Tensor Tensor::min(const Axes& axes, bool keepdim) const {
  const tensor::NamedFunction named("min");
  if (is_float(dtype())) return -reduce("min", Op::Max, -*this, dtype(), axes, keepdim);
  return ~(~*this).max(axes, keepdim);
}

Tensor Tensor::any(const Axes& axes, bool keepdim) const {
  const Tensor flags = dtype() == DType::Bool ? *this : *this != 0;
  return reduce("any", Op::Max, flags, DType::U8, axes, keepdim) != 0;
}

Tensor Tensor::all(const Axes& axes, bool keepdim) const {
  const tensor::NamedFunction named("all");
  return !(logical_not().any(axes, keepdim));
}

Tensor Tensor::mean(const Axes& axes, bool keepdim) const {
  return mean_in(in_sum_dtype(*this), axes, keepdim).cast(tensor::real_dtype(dtype()));
}

Tensor Tensor::var(const Axes& axes, bool keepdim, int64_t correction) const {
  const Tensor variance = moments("var", in_sum_dtype(*this), axes, keepdim, correction).first;
  return variance.cast(tensor::real_dtype(dtype()));
}

Tensor Tensor::std(const Axes& axes, bool keepdim, int64_t correction) const {
  const Tensor variance = moments("std", in_sum_dtype(*this), axes, keepdim, correction).first;
  return deviation(variance).cast(tensor::real_dtype(dtype()));
}

std::pair<Tensor, Tensor> Tensor::var_mean(const Axes& axes, bool keepdim,
                                           int64_t correction) const {
  const auto [variance, mean] = moments("var_mean", in_sum_dtype(*this), axes, keepdim, correction);
  const DType result = tensor::real_dtype(dtype());
  return {variance.cast(result), mean.cast(result)};
}

std::pair<Tensor, Tensor> Tensor::std_mean(const Axes& axes, bool keepdim,
                                           int64_t correction) const {
  const auto [variance, mean] = moments("std_mean", in_sum_dtype(*this), axes, keepdim, correction);
  const DType result = tensor::real_dtype(dtype());
  return {deviation(variance).cast(result), mean.cast(result)};
}

Tensor Tensor::logsumexp(const Axes& axes, bool keepdim) const {
  const tensor::NamedFunction named("logsumexp");
  return tensor::in_compute_dtype(*this, [&](const Tensor& x) {
    const Tensor top = finite_or_zero(x.max(axes, true).detach());
    const Tensor sum = (x - top).exp().sum(axes, true).log() + top;
    const Shape shape = x.shape();
    return keepdim ? sum : sum.reshape(without_axes(shape, reduced_axes("logsumexp", axes, shape)));
  });
}

Tensor Tensor::softmax(int64_t axis, std::optional<DType> wanted) const {
  const tensor::NamedFunction named("softmax");
  if (wanted) return as_float("softmax", *this, *wanted).softmax(axis);
  return tensor::in_compute_dtype(*this, [&](const Tensor& x) {
    const Tensor e = (x - x.max(axis, true).detach()).exp();
    return e * e.sum(axis, true).reciprocal();  // one division a row
  });
}

Tensor Tensor::log_softmax(int64_t axis, std::optional<DType> wanted) const {
  const tensor::NamedFunction named("log_softmax");
  if (wanted) return as_float("log_softmax", *this, *wanted).log_softmax(axis);
  return tensor::in_compute_dtype(*this, [&](const Tensor& x) {
    const Tensor shifted = x - x.max(axis, true).detach();
    return shifted - shifted.exp().sum(axis, true).log();
  });
}

Tensor Tensor::softmin(int64_t axis) const {
  const tensor::NamedFunction named("softmin");
  return (-*this).softmax(axis);
}

Tensor Tensor::normalize(double p, int64_t axis, double eps) const {
  const tensor::NamedFunction named("normalize");
  require(!std::isnan(p), "[normalize] the norm's order is NaN");
  require(eps >= 0.0, "[normalize] eps is {}", eps);
  return tensor::in_compute_dtype(*this, [&](const Tensor& x) {
    const Tensor size = x.abs();
    Tensor norm;
    if (std::isinf(p))
      norm = p > 0.0 ? size.max(axis, true) : size.min(axis, true);
    else if (p == 0.0)
      norm = (size != 0.0).cast(x.dtype()).sum(axis, true);
    else if (p == 1.0)
      norm = size.sum(axis, true);
    else if (p == 2.0)
      norm = deviation(x.square().sum(axis, true));
    else
      norm = size.pow(p).sum(axis, true).pow(1.0 / p);
    return x / plugrad::where(norm < eps, eps, norm);
  });
}

Tensor Tensor::argmax(std::optional<int64_t> axis, bool keepdim) const {
  if (!axis || ndim() == 0) {
    if (axis) reduced_axes("argmax", *axis, {});
    const Tensor index = flatten().argmax(0);
    return keepdim ? index.reshape(Shape(static_cast<size_t>(ndim()), 1)) : index;
  }
  const int64_t at = checked_axis("argmax", *axis, ndim()), count = size(at);
  require(count > 0, "[{}] axis {} of shape {} is empty", tensor::called("argmax"), at,
          tensor::lazy_text(*this));
  // The first index has the largest number counted from the end. NaN is a maximum.
  Shape along(static_cast<size_t>(ndim()), 1);
  along[static_cast<size_t>(at)] = count;
  const Tensor from_end = arange(count, 0, -1).reshape(along);
  const Tensor x = tensor::stored_once(*this);
  const Tensor hit = (x == x.max(at, true)) | x.isnan();
  return count - plugrad::where(hit, from_end, 0).max(at, keepdim);
}

Tensor Tensor::argmin(std::optional<int64_t> axis, bool keepdim) const {
  const tensor::NamedFunction named("argmin");
  return (is_float(dtype()) ? -*this : ~*this).argmax(axis, keepdim);
}

}  // namespace plugrad
