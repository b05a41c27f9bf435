// Activation functions.
#include "onnx/ops/tables.h"
#include "tensor/variable_sizes.h"

namespace plugrad::onnx {
namespace {

using Values = std::vector<Value>;

Values leaky_relu(Call& call) {
  return {call[0].leaky_relu(call.number("alpha", 0.01))};
}
Values elu(Call& call) {
  return {call[0].elu(call.number("alpha", 1.0))};
}
Values celu(Call& call) {
  return {call[0].celu(call.number("alpha", 1.0))};
}
Values selu(Call& call) {
  const Tensor x = call[0];
  const double alpha = call.number("alpha", 1.67326319217681884765625);
  const double gamma = call.number("gamma", 1.05070102214813232421875);
  return {(x < 0).where(gamma * alpha * x.minimum(0).expm1(), gamma * x)};
}
Values gelu_(Call& call) {
  return {call[0].gelu(call.text("approximate", "none") == "tanh")};
}
Values hard_sigmoid(Call& call) {
  const Tensor x = call[0];
  return {(x * call.number("alpha", 0.2) + call.number("beta", 0.5)).clamp(0, 1)};
}
Values hard_swish(Call& call) {
  return {call[0].hardswish()};
}
Values swish(Call& call) {
  const Tensor x = call[0];
  return {x * (x * call.number("alpha", 1.0)).sigmoid()};
}
Values softplus(Call& call) {
  return {call[0].softplus()};
}
Values thresholded_relu(Call& call) {
  const Tensor x = call[0];
  return {(x > call.number("alpha", 1.0)).where(x, x.zeros_like())};
}
// Of integers in f64.
Values shrink(Call& call) {
  const DType dtype = call[0].dtype();
  const Tensor x = is_float(dtype) ? call[0] : call[0].cast(DType::F64);
  const double lambda = call.number("lambd", 0.5), bias = call.number("bias", 0.0);
  return {(x < -lambda).where(x + bias, (x > lambda).where(x - bias, x.zeros_like())).cast(dtype)};
}

// Before operator set 13 the axes from `axis` on are one.
template <Tensor (Tensor::*method)(int64_t, std::optional<DType>) const>
Values softmax_along(Call& call) {
  const Tensor x = call[0];
  if (call.opset() >= 13) return {(x.*method)(call.integer("axis", -1), {})};
  const int64_t axis = call.axis_of(x, 1);
  int64_t rows = 1;
  for (int64_t i = 0; i < axis; ++i) rows *= x.size(i);
  const Tensor flat = x.reshape({rows, rows == 0 ? 0 : x.numel() / rows});
  return {(flat.*method)(1, {}).reshape(x.shape())};
}
Values hardmax(Call& call) {
  const Tensor x = call[0];
  int64_t axis = call.axis_of(x, call.opset() >= 13 ? -1 : 1);
  Tensor flat = x;
  if (call.opset() < 13) {
    int64_t rows = 1;
    for (int64_t i = 0; i < axis; ++i) rows *= x.size(i);
    flat = x.reshape({rows, rows == 0 ? 0 : x.numel() / rows});
    axis = 1;
  }
  Shape along(static_cast<size_t>(flat.ndim()), 1);
  along[static_cast<size_t>(axis)] = flat.size(axis);
  const Tensor first = flat.argmax(axis, true);
  const Tensor places = Tensor::arange(flat.size(axis), first.dtype()).reshape(along);
  return {tensor::limited_as((places == first).cast(x.dtype()).reshape(x.shape()), x)};
}

constexpr OperatorRow kActivationRows[] = {
    {"Celu", celu, kVariableSizes},
    {"Elu", elu, kVariableSizes},
    {"Gelu", gelu_, kVariableSizes},
    {"Gelu", gelu_, kVariableSizes, kMicrosoft},
    {"HardSigmoid", hard_sigmoid, kVariableSizes},
    {"HardSwish", hard_swish, kVariableSizes},
    {"Hardmax", hardmax, kVariableSizes},
    {"LeakyRelu", leaky_relu, kVariableSizes},
    {"LogSoftmax", softmax_along<&Tensor::log_softmax>, kVariableSizes},
    {"Mish", unary<&Tensor::mish>, kVariableSizes},
    {"Relu", unary<&Tensor::relu>, kVariableSizes},
    {"Selu", selu, kVariableSizes},
    {"Shrink", shrink, kVariableSizes},
    {"Sigmoid", unary<&Tensor::sigmoid>, kVariableSizes},
    {"Softmax", softmax_along<&Tensor::softmax>, kVariableSizes},
    {"Softplus", softplus, kVariableSizes},
    {"Softsign", unary<&Tensor::softsign>, kVariableSizes},
    {"Swish", swish, kVariableSizes},
    {"ThresholdedRelu", thresholded_relu, kVariableSizes},
};

}  // namespace

std::span<const OperatorRow> activation_operators() {
  return kActivationRows;
}

}  // namespace plugrad::onnx
