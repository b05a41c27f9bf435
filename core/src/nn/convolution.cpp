// Convolution layers.
#include "plugrad/nn/convolution.h"

#include <cmath>

#include "base/check.h"
#include "nn/initial.h"
#include "tensor/named_function.h"

namespace plugrad::nn {
namespace {

template <class Options>
constexpr bool kTransposed = std::is_same_v<Options, ConvTransposeOptions>;

template <class Options, int Rank>
std::string layer_name() {
  return fmt::format("Conv{}{}d", kTransposed<Options> ? "Transpose" : "", Rank);
}

Tensor apply(const Tensor& x, const Tensor& weight, const Tensor& bias,
             const ConvOptions& options) {
  return conv(x, weight, bias, options);
}
Tensor apply(const Tensor& x, const Tensor& weight, const Tensor& bias,
             const ConvTransposeOptions& options) {
  return conv_transpose(x, weight, bias, options);
}

}  // namespace

template <class Options, int Rank>
ConvLayer<Options, Rank>::ConvLayer(int64_t in, int64_t out, const PerAxis& kernel,
                                    const Options& options_, bool with_bias)
    : options(options_) {
  const std::string name = layer_name<Options, Rank>();
  const int64_t groups = options.groups;
  require(in > 0 && out > 0 && groups > 0 && in % groups == 0 && out % groups == 0,
          "[{}] {} channels to {} in {} groups; both must be multiples of the groups", name, in,
          out, groups);
  Shape sizes = kernel.list();
  if (sizes.size() == 1) sizes.assign(Rank, sizes[0]);
  bool fits = sizes.size() == Rank;
  for (int64_t size : sizes) fits = fits && size > 0;
  require(fits, "[{}] a kernel of {}; give one positive size, or {}", name,
          to_string(kernel.list()), Rank);
  Shape shape = kTransposed<Options> ? Shape{in, out / groups} : Shape{out, in / groups};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  double fan_in = 1;
  for (size_t axis = 1; axis < shape.size(); ++axis) fan_in *= static_cast<double>(shape[axis]);
  weight = trained_uniform(shape, 1.0 / std::sqrt(fan_in));
  if (with_bias) bias = trained_uniform({out}, 1.0 / std::sqrt(fan_in));
}

template <class Options, int Rank>
Tensor ConvLayer<Options, Rank>::operator()(const Tensor& x) const {
  const std::string name = layer_name<Options, Rank>();
  const tensor::NamedFunction named(name);
  require(x.ndim() == Rank + 2, "[{}] x is {}; it takes (n, channels) and {} more axes", name,
          to_string(x.shape()), Rank);
  return apply(x, weight, bias, options);
}

template struct PLUGRAD_API ConvLayer<ConvOptions, 1>;
template struct PLUGRAD_API ConvLayer<ConvOptions, 2>;
template struct PLUGRAD_API ConvLayer<ConvOptions, 3>;
template struct PLUGRAD_API ConvLayer<ConvTransposeOptions, 1>;
template struct PLUGRAD_API ConvLayer<ConvTransposeOptions, 2>;
template struct PLUGRAD_API ConvLayer<ConvTransposeOptions, 3>;

}  // namespace plugrad::nn
