// Normalisation and dropout.
#include "plugrad/functional.h"
#include "tensor/compute_dtype.h"
#include "tensor/elementwise/compositions.h"
#include "tensor/lazy_text.h"
#include "tensor/named_function.h"

namespace plugrad {

using tensor::to_compute_dtype;
using tensor::to_result_dtype;

namespace {

Tensor normalised(const Tensor& x, const Axes& axes, double eps) {
  const Tensor centred = x - x.mean(axes, true);
  return centred * (centred.square().mean(axes, true) + eps).rsqrt();
}

/// Reshapes `list`, one element for each index of `axis`, to broadcast with x. Undefined stays so.
Tensor parameter_along(std::string_view function, std::string_view what, const Tensor& x,
                       int64_t axis, const Tensor& list) {
  if (!list.defined()) return list;
  Shape shape(static_cast<size_t>(x.ndim()), 1);
  shape[static_cast<size_t>(axis)] = x.size(axis);
  require(list.numel() == x.size(axis), "[{}] {} {} does not have one value for each of {} of {}",
          function, what, tensor::lazy_text(list), x.size(axis), tensor::lazy_text(x));
  return to_compute_dtype(list).reshape(shape);
}

Tensor scaled(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor y = weight.defined() ? x * weight : x;
  return bias.defined() ? y + bias : y;
}

/// Normalises over the channels of each group and all later axes.
Tensor normalise_groups(std::string_view function, const Tensor& x, int64_t groups,
                        const Tensor& weight, const Tensor& bias, double eps) {
  const int64_t channels = x.size(1);
  require(groups > 0 && channels % groups == 0,
          "[{}] {} channels of {} are no multiple of {} groups", function, channels,
          tensor::lazy_text(x), groups);
  const Shape shape = x.shape();
  int64_t elements = channels / groups;
  for (size_t i = 2; i < shape.size(); ++i) elements *= shape[i];
  const Tensor y = normalised(to_compute_dtype(x).reshape({shape[0], groups, elements}), -1, eps);
  return to_result_dtype(scaled(y.reshape(shape), parameter_along(function, "weight", x, 1, weight),
                                parameter_along(function, "bias", x, 1, bias)),
                         x);
}

}  // namespace

Tensor Tensor::layernorm(const Axes& axes, double eps) const {
  const tensor::NamedFunction named("layernorm");
  return to_result_dtype(normalised(to_compute_dtype(*this), axes, eps), *this);
}

Tensor layernorm(const Tensor& x, const Axes& axes, double eps) {
  return x.layernorm(axes, eps);
}

Tensor rmsnorm(const Tensor& x, const Tensor& weight, double eps, const Axes& axes) {
  const tensor::NamedFunction named("rmsnorm");
  const Tensor promoted = to_compute_dtype(x);
  const Tensor y = promoted * (promoted.square().mean(axes, true) + eps).rsqrt();
  return to_result_dtype(weight.defined() ? y * to_compute_dtype(weight) : y, x);
}

Tensor groupnorm(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias,
                 double eps) {
  const tensor::NamedFunction named("groupnorm");
  require(x.ndim() >= 2, "[groupnorm] shape {} has no axis 1 of channels", tensor::lazy_text(x));
  return normalise_groups("groupnorm", x, groups, weight, bias, eps);
}

Tensor instancenorm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  const tensor::NamedFunction named("instancenorm");
  require(x.ndim() >= 3, "[instancenorm] shape {} has no axes after that of channels",
          tensor::lazy_text(x));
  return normalise_groups("instancenorm", x, x.size(1), weight, bias, eps);
}

Tensor batchnorm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                 const Tensor& inverse_std, int64_t axis) {
  const tensor::NamedFunction named("batchnorm");
  constexpr std::string_view kName = "batchnorm";
  require(mean.defined() && inverse_std.defined(), "[{}] mean and inverse_std must be given",
          kName);
  const int64_t at = tensor::checked_axis(kName, axis, x.ndim());
  Tensor y = to_compute_dtype(x) - parameter_along(kName, "mean", x, at, mean);
  if (weight.defined()) y = y * parameter_along(kName, "weight", x, at, weight);
  y = y * parameter_along(kName, "inverse_std", x, at, inverse_std);
  return to_result_dtype(scaled(y, {}, parameter_along(kName, "bias", x, at, bias)), x);
}

Tensor Tensor::dropout(double p, bool training) const {
  require(p >= 0.0 && p <= 1.0, "[dropout] the probability is {}, not in [0, 1]", p);
  if (!training || p == 0.0) return tensor::own_handle(*this);
  if (p == 1.0) return tensor::constant_in(*this, zeros_like());
  const Tensor stays = rand(shape(), DType::F32, device()) >= p;
  return plugrad::where(stays, *this, 0.0) / (1.0 - p);
}

Tensor sequential(const Tensor& x, std::initializer_list<LayerRef> layers) {
  Tensor y = x;
  for (const LayerRef& layer : layers) y = layer(y);
  return y;
}

Tensor sequential(const Tensor& x,
                  const std::vector<std::function<Tensor(const Tensor&)>>& layers) {
  Tensor y = x;
  for (const auto& layer : layers) y = layer(y);
  return y;
}

}  // namespace plugrad
