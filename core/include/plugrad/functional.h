/// Functions of tensors: the free forms of methods, joining, and the functions that networks are
/// made of.
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

/// Coordinates of a grid: tensor i has the values of axis i, repeated along the others. Axes have
/// one axis or none; indexing "xy" swaps the first two. Errors: User for another indexing.
PLUGRAD_API std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes,
                                         std::string_view indexing = "ij");

/// Joins along an axis that is there already. Errors: User for no tensors or other sizes that
/// differ.
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
/// As layernorm over the channels of each group and the axes after them, then times weight plus
/// bias of each channel. Shape: x (n, channels, …). Errors: User for channels that the groups do
/// not divide. Wu and He 2018.
PLUGRAD_API Tensor groupnorm(const Tensor& x, int64_t groups, const Tensor& weight = {},
                             const Tensor& bias = {}, double eps = 1e-5);
/// groupnorm with a group a channel. Shape: x (n, channels, sizes…). Ulyanov et al. 2016.
PLUGRAD_API Tensor instancenorm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                                double eps = 1e-5);
/// (x - mean) * inverse_std * weight + bias along `axis`; statistics have one element a channel,
/// undefined weight or bias are left out. Dtype: that of x. Ioffe and Szegedy 2015.
PLUGRAD_API Tensor batchnorm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                             const Tensor& mean, const Tensor& inverse_std, int64_t axis = 1);

/// A layer as an argument: what a Tensor is passed to, a module, a function or &Tensor::relu. It is
/// not copied, since a copied module has parameters of its own; it lasts as long as the call.
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

/// The layers applied one after the other: sequential(x, {conv, &Tensor::relu, head}).
PLUGRAD_API Tensor sequential(const Tensor& x, std::initializer_list<LayerRef> layers);
/// Those of a list, which holds copies of modules that were put into it.
PLUGRAD_API Tensor sequential(const Tensor& x,
                              const std::vector<std::function<Tensor(const Tensor&)>>& layers);

/// Rows of `table` (n, d). Shape: places.shape + (d). Errors: User for places outside of 0 to n - 1
/// that the host knows; computed ones outside read 0 (see Indexing in the tensor guide).
PLUGRAD_API Tensor embedding(const Tensor& table, const Tensor& places);

/// softmax(q k^T scale + mask) v. Shape: q (…, l, d), k (…, s, d), v (…, s, e) -> (…, l, e). The
/// mask (…, l, s) is bool (true takes part) or is added; rows in which nothing takes part give 0.
/// is_causal lets place i see places up to i. With enable_gqa the heads of k and v (axis -3) are
/// shared by groups of those of q. `scale` is 1 / sqrt(d) unless given. Dtype: the common one;
/// halves are computed in f32. Errors: User for sizes, heads or masks that do not fit. Vaswani et
/// al. 2017; Ainslie et al. 2023.
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
// Two forms where there is a default, so that the name alone is a function of a tensor.
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
