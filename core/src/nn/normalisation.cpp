// Normalisation layers.
#include <algorithm>

#include "base/check.h"
#include "nn/initial.h"
#include "plugrad/nn.h"
#include "tensor/conv/windows.h"
#include "tensor/record.h"

namespace plugrad::nn {
namespace {

void require_channels(const char* layer, const Tensor& x, int64_t channels) {
  require(x.ndim() >= 2 && x.size(1) == channels,
          "[{}] x is {}, but the layer has {} channels on axis 1{}", layer, to_string(x.shape()),
          channels, tensor::channel_advice(x, channels));
}

// The last axes of x, counted from the back; they must have the sizes `shape`.
std::vector<int64_t> last_axes(const char* layer, const Tensor& x, const Shape& shape) {
  const Shape all = x.shape();
  const bool fits =
      all.size() >= shape.size() && std::equal(shape.rbegin(), shape.rend(), all.rbegin());
  require(fits, "[{}] x is {}, but its last axes must be {}", layer, to_string(all),
          to_string(shape));
  std::vector<int64_t> axes;
  for (int64_t axis = -static_cast<int64_t>(shape.size()); axis < 0; ++axis) axes.push_back(axis);
  return axes;
}

void require_shape(const char* layer, const Shape& shape) {
  require(!shape.empty(), "[{}] there are no sizes; give those of the axes to normalise over",
          layer);
}

}  // namespace

BatchNorm::BatchNorm(int64_t channels, BatchNormOptions options_) : options(options_) {
  require(channels > 0, "[BatchNorm] {} channels; there must be one at least", channels);
  if (options.affine) {
    weight = trained_constant({channels}, 1.0f);
    bias = trained_constant({channels}, 0.0f);
  }
  running_mean = filled({channels}, 0.0f);
  running_var = filled({channels}, 1.0f);
  num_batches_tracked = Tensor::from<int64_t>({0}, Shape{});
}

Tensor BatchNorm::operator()(const Tensor& x) {
  const tensor::NamedFunction named("BatchNorm");
  const int64_t channels = running_mean.numel();
  require_channels("BatchNorm", x, channels);
  if (!is_training())
    return batchnorm(x, weight, bias, running_mean, (running_var + options.eps).rsqrt());
  std::vector<int64_t> others;
  for (int64_t axis = 0; axis < x.ndim(); ++axis)
    if (axis != 1) others.push_back(axis);
  tensor::require_fixed("BatchNorm", x);  // the unbiased variance needs a constant count
  const int64_t count = x.numel() / channels;
  require(count > 1, "[BatchNorm] x is {}: one value a channel has no variance to train with",
          to_string(x.shape()));
  Tensor mean = x.mean(others), variance = x.var(others, false, 0);
  const double momentum = options.momentum;
  const double unbiased = momentum * static_cast<double>(count) / static_cast<double>(count - 1);
  running_mean.assign(running_mean * (1 - momentum) + mean.detach() * momentum);
  running_var.assign(running_var * (1 - momentum) + variance.detach() * unbiased);
  num_batches_tracked.assign(num_batches_tracked + 1);
  return batchnorm(x, weight, bias, mean, (variance + options.eps).rsqrt());
}

LayerNorm::LayerNorm(const Shape& shape_, double eps_, bool affine) : shape(shape_), eps(eps_) {
  require_shape("LayerNorm", shape);
  if (!affine) return;
  weight = trained_constant(shape, 1.0f);
  bias = trained_constant(shape, 0.0f);
}

Tensor LayerNorm::operator()(const Tensor& x) const {
  const tensor::NamedFunction named("LayerNorm");
  const Tensor y = layernorm(x, last_axes("LayerNorm", x, shape), eps);
  return weight.defined() ? y * weight + bias : y;
}

GroupNorm::GroupNorm(int64_t groups_, int64_t channels_, double eps_, bool affine)
    : groups(groups_), channels(channels_), eps(eps_) {
  require(groups > 0 && channels > 0 && channels % groups == 0,
          "[GroupNorm] {} channels in {} groups; channels must be a multiple of the groups",
          channels, groups);
  if (!affine) return;
  weight = trained_constant({channels}, 1.0f);
  bias = trained_constant({channels}, 0.0f);
}

Tensor GroupNorm::operator()(const Tensor& x) const {
  const tensor::NamedFunction named("GroupNorm");
  require_channels("GroupNorm", x, channels);
  return groupnorm(x, groups, weight, bias, eps);
}

InstanceNorm::InstanceNorm(int64_t channels_, double eps_, bool affine)
    : channels(channels_), eps(eps_) {
  require(channels > 0, "[InstanceNorm] {} channels; there must be one at least", channels);
  if (!affine) return;
  weight = trained_constant({channels}, 1.0f);
  bias = trained_constant({channels}, 0.0f);
}

Tensor InstanceNorm::operator()(const Tensor& x) const {
  const tensor::NamedFunction named("InstanceNorm");
  require_channels("InstanceNorm", x, channels);
  return instancenorm(x, weight, bias, eps);
}

RMSNorm::RMSNorm(const Shape& shape_, double eps_, bool affine) : shape(shape_), eps(eps_) {
  require_shape("RMSNorm", shape);
  if (affine) weight = trained_constant(shape, 1.0f);
}

Tensor RMSNorm::operator()(const Tensor& x) const {
  const tensor::NamedFunction named("RMSNorm");
  return rmsnorm(x, weight, eps, last_axes("RMSNorm", x, shape));
}

}  // namespace plugrad::nn
