/// Layers: functions with trained state. How weights begin is PyTorch's default unless said
/// otherwise.
#pragma once

#include <cstdint>

#include "plugrad/nn/state.h"

namespace plugrad::nn {

/// x times weight, transposed, plus bias. Shape: (…, in) -> (…, out). Weight (out, in) and bias
/// (out) begin uniform in ±1/sqrt(in).
struct PLUGRAD_API Linear {
  Linear(int64_t in, int64_t out, bool with_bias = true);
  Tensor operator()(const Tensor& x) const;
  Tensor weight, bias;
  PLUGRAD_FIELDS(weight, bias)
};

/// Rows of a table by number. Shape: places (…) of integers -> (…, width). The table begins
/// standard normal.
struct PLUGRAD_API Embedding {
  Embedding(int64_t count, int64_t width);
  Tensor operator()(const Tensor& places) const;
  Tensor weight;
  PLUGRAD_FIELDS(weight)
};

/// Zeroes each element with probability p and divides the others by 1 - p, in training; else x.
/// Srivastava et al. 2014.
struct PLUGRAD_API Dropout {
  explicit Dropout(double p = 0.5);
  Tensor operator()(const Tensor& x) const;
  double p;
  PLUGRAD_FIELDS()
};

}  // namespace plugrad::nn
