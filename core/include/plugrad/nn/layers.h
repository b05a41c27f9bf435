/// Layers: functions with trained state. Initial weights are PyTorch's defaults unless a layer says
/// otherwise.
#pragma once

#include <cstdint>

#include "plugrad/nn/state.h"

namespace plugrad::nn {

/// x times the transposed weight, plus bias. Shape: (…, in) -> (…, out). Initial weight (out, in)
/// and bias (out): uniform in ±1/sqrt(in).
struct PLUGRAD_API Linear {
  Linear(int64_t in, int64_t out, bool with_bias = true);
  Tensor operator()(const Tensor& x) const;
  Tensor weight, bias;
  PLUGRAD_FIELDS(weight, bias)
};

/// Rows of a table by index. Shape: indices (…) of integers -> (…, width). Initial table:
/// standard normal.
struct PLUGRAD_API Embedding {
  Embedding(int64_t count, int64_t width);
  Tensor operator()(const Tensor& indices) const;
  Tensor weight;
  PLUGRAD_FIELDS(weight)
};

/// In training, zeroes each element with probability p and divides the others by 1 - p; otherwise
/// returns x. Srivastava et al. 2014.
struct PLUGRAD_API Dropout {
  explicit Dropout(double p = 0.5);
  Tensor operator()(const Tensor& x) const;
  double p;
  PLUGRAD_FIELDS()
};

}  // namespace plugrad::nn
