/// Convolutions and transposed convolutions as layers, in one to three dimensions. Weight and bias
/// start uniform in ±1/sqrt(fan in). Fan in is the product of the weight's sizes without the first,
/// for transposed convolutions too, as in PyTorch.
#pragma once

#include <cstdint>

#include "plugrad/conv.h"
#include "plugrad/nn/state.h"
#include "plugrad/window.h"

namespace plugrad::nn {

/// A layer of conv or conv_transpose with `Rank` axes of sizes. Errors: User for channels that are
/// no multiples of the groups, or a kernel without one or `Rank` positive sizes.
template <class Options, int Rank>
struct PLUGRAD_API ConvLayer {
  ConvLayer(int64_t in, int64_t out, const PerAxis& kernel, const Options& options = {},
            bool with_bias = true);
  Tensor operator()(const Tensor& x) const;
  Tensor weight, bias;
  Options options;
  PLUGRAD_FIELDS(weight, bias)
};

/// Cross-correlation. Shape: (n, in, sizes…) -> (n, out, …), see conv. Weight:
/// (out, in / groups, kernel sizes…).
using Conv1d = ConvLayer<ConvOptions, 1>;
using Conv2d = ConvLayer<ConvOptions, 2>;
using Conv3d = ConvLayer<ConvOptions, 3>;

/// Transposed convolution. Shape: (n, in, sizes…) -> (n, out, …), see conv_transpose. Weight: (in,
/// out / groups, kernel sizes…). Zeiler et al. 2010.
using ConvTranspose1d = ConvLayer<ConvTransposeOptions, 1>;
using ConvTranspose2d = ConvLayer<ConvTransposeOptions, 2>;
using ConvTranspose3d = ConvLayer<ConvTransposeOptions, 3>;

}  // namespace plugrad::nn
