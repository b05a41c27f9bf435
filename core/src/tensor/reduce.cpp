// Reductions over lists of axes, and the functions that are made of them.
#include <limits>

#include "plugrad/functional.h"
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

/// One Reduce node in `dtype`. Axes of size 1 need none.
Tensor reduce(std::string_view function, Op op, const Tensor& x, DType dtype, const Axes& axes,
              bool keepdim) {
  Recorder r(function);
  Id node = r.cast(r.use(x), dtype);
  const Shape shape = r.shape(node);
  const std::vector<int64_t> list =
      checked_axes(function, axes, static_cast<int64_t>(shape.size()));
  std::vector<int64_t> arg = {static_cast<int64_t>(op)};
  for (int64_t axis : list)
    if (shape[static_cast<size_t>(axis)] != 1) arg.push_back(axis);
  Graph& g = r.graph();
  if (arg.size() > 1) node = g.add(Op::Reduce, dtype, {node}, g.list(arg));
  if (!keepdim) node = r.reshape(node, without_axes(shape, list));
  return r.done(node);
}

/// How many elements go into one element of the result.
int64_t reduced_count(std::string_view function, const Tensor& x, const Axes& axes) {
  const Shape shape = x.shape();
  int64_t count = 1;
  for (int64_t axis : checked_axes(function, axes, static_cast<int64_t>(shape.size())))
    count *= shape[static_cast<size_t>(axis)];
  return count;
}

/// The dtype in which averages are computed: halves would overflow in the sum.
DType mean_dtype(DType dtype) {
  return dtype == DType::F64 ? DType::F64 : DType::F32;
}

Tensor mean_in(const Tensor& x, const Axes& axes, bool keepdim) {
  return x.sum(axes, keepdim) / static_cast<double>(reduced_count("mean", x, axes));
}

/// An infinite maximum is not subtracted: inf - inf would be NaN.
Tensor finite_or_zero(const Tensor& x) {
  return where(x.isinf(), 0.0, x);
}

}  // namespace

Tensor Tensor::sum(const Axes& axes, bool keepdim) const {
  return reduce("sum", Op::Add, *this, sum_dtype(dtype()), axes, keepdim);
}

Tensor Tensor::prod(const Axes& axes, bool keepdim) const {
  return reduce("prod", Op::Mul, *this, sum_dtype(dtype()), axes, keepdim);
}

Tensor Tensor::max(const Axes& axes, bool keepdim) const {
  if (dtype() == DType::Bool) return any(axes, keepdim);
  return reduce("max", Op::Max, *this, dtype(), axes, keepdim);
}

Tensor Tensor::min(const Axes& axes, bool keepdim) const {
  if (is_float(dtype())) return -reduce("min", Op::Max, -*this, dtype(), axes, keepdim);
  return ~(~*this).max(axes, keepdim);
}

Tensor Tensor::any(const Axes& axes, bool keepdim) const {
  const Tensor flags = dtype() == DType::Bool ? *this : *this != 0;
  return reduce("any", Op::Max, flags, DType::U8, axes, keepdim) != 0;
}

Tensor Tensor::all(const Axes& axes, bool keepdim) const {
  return !(logical_not().any(axes, keepdim));
}

Tensor Tensor::mean(const Axes& axes, bool keepdim) const {
  const DType result = tensor::real_dtype(dtype());
  return mean_in(cast(mean_dtype(dtype())), axes, keepdim).cast(result);
}

Tensor Tensor::var(const Axes& axes, bool keepdim, int64_t correction) const {
  const DType result = tensor::real_dtype(dtype());
  const Tensor x = cast(mean_dtype(dtype()));
  const Tensor squares = (x - mean_in(x, axes, true)).square().sum(axes, keepdim);
  const int64_t count = std::max<int64_t>(reduced_count("var", x, axes) - correction, 0);
  return (squares / static_cast<double>(count)).cast(result);
}

Tensor Tensor::std(const Axes& axes, bool keepdim, int64_t correction) const {
  const Tensor variance = var(axes, keepdim, correction), zero = variance == 0.0;
  return plugrad::where(zero, 0.0,
                        plugrad::where(zero, 1.0, variance).sqrt());  // gradient 0 at 0, not NaN
}

Tensor Tensor::logsumexp(const Axes& axes, bool keepdim) const {
  const Tensor top = finite_or_zero(max(axes, true).detach());
  const Tensor sum = (*this - top).exp().sum(axes, true).log() + top;
  const Shape shape = this->shape();
  return keepdim ? sum : sum.reshape(without_axes(shape, checked_axes("logsumexp", axes, ndim())));
}

Tensor Tensor::softmax(int64_t axis) const {
  const Tensor e = (*this - max(axis, true).detach()).exp();
  return e / e.sum(axis, true);
}

Tensor Tensor::log_softmax(int64_t axis) const {
  const Tensor shifted = *this - max(axis, true).detach();
  return shifted - shifted.exp().sum(axis, true).log();
}

Tensor Tensor::argmax(std::optional<int64_t> axis, bool keepdim) const {
  if (!axis) {
    const Tensor place = flatten().argmax(0);
    return keepdim ? place.reshape(Shape(static_cast<size_t>(ndim()), 1)) : place;
  }
  const int64_t at = checked_axis("argmax", *axis, ndim()), count = size(at);
  require(count > 0, "[argmax] axis {} of shape {} is empty", at, to_string(shape()));
  // The first place is the largest of those counted from the end. NaN is a maximum.
  Shape along(static_cast<size_t>(ndim()), 1);
  along[static_cast<size_t>(at)] = count;
  const Tensor from_end = arange(count, 0, -1).reshape(along);
  const Tensor hit = (*this == max(at, true)) | isnan();
  return count - plugrad::where(hit, from_end, 0).max(at, keepdim);
}

Tensor Tensor::argmin(std::optional<int64_t> axis, bool keepdim) const {
  return (is_float(dtype()) ? -*this : ~*this).argmax(axis, keepdim);
}

}  // namespace plugrad
