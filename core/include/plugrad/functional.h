/// Free functions of tensors: forms of the methods, joins, and the functions of neural networks.
#pragma once

#include <functional>
#include <initializer_list>
#include <type_traits>

#include "plugrad/conv.h"
#include "plugrad/tensor.h"

namespace plugrad {

/// Elementwise choice. Shape: broadcast of all three. Dtype: promotion of yes and no. Errors: User
/// unless `condition` is bool.
PLUGRAD_API Tensor where(const Tensor& condition, const Tensor& yes, const Tensor& no);

/// Coordinates of a grid: tensor i has the values of axis i, repeated along the other axes. Each of
/// `axes` is a vector or a scalar; indexing "xy" swaps the first two. Errors: User for another
/// indexing.
PLUGRAD_API std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes,
                                         std::string_view indexing = "ij");

/// Joins along an existing axis. Errors: User for an empty list, or sizes that differ in other
/// axes.
PLUGRAD_API Tensor cat(const std::vector<Tensor>& tensors, int64_t axis = 0);
/// Joins along a new axis. Errors: User for shapes that differ.
PLUGRAD_API Tensor stack(const std::vector<Tensor>& tensors, int64_t axis = 0);

/// Matrix product. Shape: (…, n, k) x (…, k, m) -> (…, n, m); a one-axis operand is a row on the
/// left, a column on the right, and loses that axis; leading axes broadcast. Errors: User for inner
/// sizes that differ.
PLUGRAD_API Tensor matmul(const Tensor& a, const Tensor& b);
/// x times `weight` (k, m) plus `bias` (m).
PLUGRAD_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

/// (x - mean) / sqrt(variance + eps) over `axes`; no scale or shift. Dtype: that of x; halves are
/// computed in f32. Ba et al. 2016.
PLUGRAD_API Tensor layernorm(const Tensor& x, const Axes& axes = -1, double eps = 1e-5);
/// x / sqrt(mean of x² + eps) * weight over the last axes. Zhang and Sennrich 2019.
PLUGRAD_API Tensor rmsnorm(const Tensor& x, const Tensor& weight = {}, double eps = 1e-6,
                           const Axes& axes = -1);
/// Normalises like layernorm over the channels of each group and the axes after them, then
/// multiplies by the weight and adds the bias of each channel. Shape: x (n, channels, …). Errors:
/// User when the groups do not divide the channels. Wu and He 2018.
PLUGRAD_API Tensor groupnorm(const Tensor& x, int64_t groups, const Tensor& weight = {},
                             const Tensor& bias = {}, double eps = 1e-5);
/// groupnorm with one group for each channel. Shape: x (n, channels, sizes…). Ulyanov et al. 2016.
PLUGRAD_API Tensor instancenorm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                                double eps = 1e-5);
/// (x - mean) * inverse_std * weight + bias along `axis`. The statistics have one element for each
/// channel; an undefined weight or bias is left out. Dtype: that of x. Ioffe and Szegedy 2015.
PLUGRAD_API Tensor batchnorm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                             const Tensor& mean, const Tensor& inverse_std, int64_t axis = 1);

/// Reference to a layer: a module, a function of a Tensor, or &Tensor::relu. Valid during the call
/// only. A reference, because a copied module would have parameters of its own.
class LayerRef {
 public:
  template <class Layer>
    requires(!std::is_same_v<std::remove_cvref_t<Layer>, LayerRef> &&
             std::is_invocable_r_v<Tensor, Layer&, const Tensor&>)
  LayerRef(Layer&& layer)  // NOLINT(google-explicit-constructor): layers stand in a list
      : call_([&layer](const Tensor& x) -> Tensor { return std::invoke(layer, x); }) {}
  Tensor operator()(const Tensor& x) const { return call_(x); }

 private:
  std::function<Tensor(const Tensor&)> call_;
};

/// Applies the layers in order: sequential(x, {conv, &Tensor::relu, head}).
PLUGRAD_API Tensor sequential(const Tensor& x, std::initializer_list<LayerRef> layers);
/// The same for a list, which holds copies of the modules that were put into it.
PLUGRAD_API Tensor sequential(const Tensor& x,
                              const std::vector<std::function<Tensor(const Tensor&)>>& layers);

/// Rows of `table` (n, d). Shape: indices.shape + (d). Errors: User for indices outside 0
/// to n - 1 that the host knows; computed indices out of range read 0 (see Indexing in the tensor
/// guide).
PLUGRAD_API Tensor embedding(const Tensor& table, const Tensor& indices);

/// softmax(q k^T scale + mask) v. Shape: q (…, l, d), k (…, s, d), v (…, s, e) -> (…, l, e). The
/// mask (…, l, s) is bool (true: attend) or is added; a row without any true gives 0. With
/// is_causal position i attends to positions up to i. With enable_gqa several heads of q share one
/// head of k and v (axis -3). `scale` is 1 / sqrt(d) unless given. Dtype: the common one; halves
/// are computed in f32. Errors: User for sizes, heads or masks that do not fit. Vaswani et al.
/// 2017; Ainslie et al. 2023.
PLUGRAD_API Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                                const Tensor& mask = {}, bool is_causal = false,
                                                double dropout = 0.0, bool enable_gqa = false,
                                                std::optional<double> scale = {});

// Free forms.
inline Tensor relu(const Tensor& x) {
  return x.relu();
}
inline Tensor sigmoid(const Tensor& x) {
  return x.sigmoid();
}
inline Tensor tanh(const Tensor& x) {
  return x.tanh();
}
// Functions with a default argument are two overloads, so that the name converts to a function of
// one Tensor.
inline Tensor gelu(const Tensor& x) {
  return x.gelu();
}
inline Tensor gelu(const Tensor& x, bool tanh_form) {
  return x.gelu(tanh_form);
}
inline Tensor silu(const Tensor& x) {
  return x.silu();
}
inline Tensor softmax(const Tensor& x) {
  return x.softmax();
}
inline Tensor softmax(const Tensor& x, int64_t axis, std::optional<DType> dtype = {}) {
  return x.softmax(axis, dtype);
}
inline Tensor log_softmax(const Tensor& x) {
  return x.log_softmax();
}
inline Tensor log_softmax(const Tensor& x, int64_t axis, std::optional<DType> dtype = {}) {
  return x.log_softmax(axis, dtype);
}
inline Tensor exp(const Tensor& x) {
  return x.exp();
}
inline Tensor exp2(const Tensor& x) {
  return x.exp2();
}
inline Tensor log(const Tensor& x) {
  return x.log();
}
inline Tensor log2(const Tensor& x) {
  return x.log2();
}
inline Tensor sin(const Tensor& x) {
  return x.sin();
}
inline Tensor cos(const Tensor& x) {
  return x.cos();
}
inline Tensor sqrt(const Tensor& x) {
  return x.sqrt();
}
inline Tensor rsqrt(const Tensor& x) {
  return x.rsqrt();
}
inline Tensor abs(const Tensor& x) {
  return x.abs();
}
inline Tensor pow(const Tensor& x, const Tensor& exponent) {
  return x.pow(exponent);
}
inline Tensor maximum(const Tensor& a, const Tensor& b) {
  return a.maximum(b);
}
inline Tensor minimum(const Tensor& a, const Tensor& b) {
  return a.minimum(b);
}

}  // namespace plugrad
