// Linear, Embedding and Dropout, the initial values of layers, and the training mode.
#include <cmath>
#include <functional>
#include <numeric>

#include "base/check.h"
#include "nn/initial.h"
#include "plugrad/nn.h"
#include "tensor/named_function.h"

namespace plugrad::nn {
namespace {

thread_local bool training_on_this_thread = true;

}  // namespace

bool is_training() {
  return training_on_this_thread;
}

TrainingScope::TrainingScope(bool training) : outer_(training_on_this_thread) {
  training_on_this_thread = training;
}
TrainingScope::~TrainingScope() {
  training_on_this_thread = outer_;
}

Tensor trained_uniform(const Shape& shape, double bound) {
  return Tensor::uniform(shape, -bound, bound).requires_grad_();
}

Tensor filled(const Shape& shape, float value) {
  for (int64_t size : shape) require(size >= 0, "[nn] {} is no shape", to_string(shape));
  auto count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  return Tensor::from(std::vector<float>(static_cast<size_t>(count), value), shape);
}

Tensor trained_constant(const Shape& shape, float value) {
  return filled(shape, value).requires_grad_();
}

// The bound of kaiming_uniform with a = sqrt(5), which is 1/sqrt(fan in): the default since Torch.
Linear::Linear(int64_t in, int64_t out, bool with_bias) {
  require(in > 0 && out > 0, "[Linear] {} inputs to {} outputs; both must be positive", in, out);
  double bound = 1.0 / std::sqrt(static_cast<double>(in));
  weight = trained_uniform({out, in}, bound);
  if (with_bias) bias = trained_uniform({out}, bound);
}

Tensor Linear::operator()(const Tensor& x) const {
  const tensor::NamedFunction named("Linear");
  require(x.ndim() >= 1 && x.shape().back() == weight.size(1),
          "[Linear] x is {}, but the layer takes {} values in the last axis", to_string(x.shape()),
          weight.size(1));
  return linear(x, weight.transpose(), bias);
}

Dropout::Dropout(double p_) : p(p_) {
  require(p >= 0.0 && p <= 1.0, "[Dropout] p is {}; it must be in [0, 1]", p);
}

Tensor Dropout::operator()(const Tensor& x) const {
  return x.dropout(p, is_training());
}

Embedding::Embedding(int64_t count, int64_t width) {
  require(count > 0 && width > 0, "[Embedding] {} rows of {}; both must be positive", count, width);
  weight = Tensor::randn({count, width}).requires_grad_();
}

Tensor Embedding::operator()(const Tensor& indices) const {
  const tensor::NamedFunction named("Embedding");
  return embedding(weight, indices);
}

}  // namespace plugrad::nn
