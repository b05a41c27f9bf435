/// Layers that normalise to mean 0 and deviation 1, over a batch, a sample, a group or a row.
/// Scales (weight) start as ones and shifts (bias) as zeros.
#pragma once

#include <cstdint>

#include "plugrad/nn/state.h"

namespace plugrad::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;  ///< weight of a batch in the running statistics
  bool affine = true;     ///< with a trained scale and shift
};
/// (x - mean) / sqrt(variance + eps) * weight + bias for each channel (axis 1). Shape: (n,
/// channels) or (n, channels, …). Training uses the mean and variance of the batch and averages
/// them into running_mean and running_var (unbiased); evaluation uses these averages.
/// num_batches_tracked (i64) counts the batches. Ioffe and Szegedy 2015.
struct PLUGRAD_API BatchNorm {
  explicit BatchNorm(int64_t channels, BatchNormOptions options = {});
  Tensor operator()(const Tensor& x);
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;
  BatchNormOptions options;
  PLUGRAD_FIELDS(weight, bias, running_mean, running_var, num_batches_tracked)
};

/// Normalises over the last axes, which have the sizes `shape`, with a trained scale and shift of
/// that shape. Ba et al. 2016.
struct PLUGRAD_API LayerNorm {
  explicit LayerNorm(const Shape& shape, double eps = 1e-5, bool affine = true);
  Tensor operator()(const Tensor& x) const;
  Tensor weight, bias;
  Shape shape;
  double eps;
  PLUGRAD_FIELDS(weight, bias)
};

/// Normalises each sample over `groups` equal parts of its channels (axis 1) and all later axes,
/// with a trained scale and shift for each channel. Shape: (n, channels, …). Wu and He 2018.
struct PLUGRAD_API GroupNorm {
  GroupNorm(int64_t groups, int64_t channels, double eps = 1e-5, bool affine = true);
  Tensor operator()(const Tensor& x) const;
  Tensor weight, bias;
  int64_t groups, channels;
  double eps;
  PLUGRAD_FIELDS(weight, bias)
};

/// GroupNorm with one group for each channel; scale and shift are trained only if `affine`. Ulyanov
/// et al. 2016.
struct PLUGRAD_API InstanceNorm {
  explicit InstanceNorm(int64_t channels, double eps = 1e-5, bool affine = false);
  Tensor operator()(const Tensor& x) const;
  Tensor weight, bias;
  int64_t channels;
  double eps;
  PLUGRAD_FIELDS(weight, bias)
};

/// x / sqrt(mean of squares + eps) * weight over the last axes, which have the sizes `shape`. The
/// mean is not subtracted. Zhang and Sennrich 2019.
struct PLUGRAD_API RMSNorm {
  explicit RMSNorm(const Shape& shape, double eps = 1e-6, bool affine = true);
  Tensor operator()(const Tensor& x) const;
  Tensor weight;
  Shape shape;
  double eps;
  PLUGRAD_FIELDS(weight)
};

}  // namespace plugrad::nn
