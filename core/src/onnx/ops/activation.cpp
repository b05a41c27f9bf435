// Activation functions.
#include "onnx/ops/activation.h"

#include <algorithm>
#include <cctype>

#include "onnx/ops/tables.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad::onnx {
namespace {

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
  return {activation_of(call, "Selu", parameter_of(call, "alpha"),
                        parameter_of(call, "gamma"))(call[0])};
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
  return {call.with_sizes_of((places == first).cast(x.dtype()).reshape(x.shape()), x)};
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

constexpr ActivationNumbers kActivationNumbers[] = {
    {"Affine", 1.0, 0.0},      {"Elu", 1.0},
    {"HardSigmoid", 0.2, 0.5}, {"LeakyRelu", 0.01},
    {"ScaledTanh", 1.0, 1.0},  {"Selu", 1.67326319217681884765625, 1.05070102214813232421875},
    {"ThresholdedRelu", 1.0},
};

bool is_same_name(std::string_view name, std::string_view wanted) {
  return std::ranges::equal(name, wanted,
                            [](char a, char b) { return std::tolower(a) == std::tolower(b); });
}

}  // namespace

std::optional<double> parameter_of(Call& call, std::string_view attribute) {
  return call.attribute(attribute) ? std::optional(call.number(attribute, 0)) : std::nullopt;
}

ActivationNumbers activation_numbers(std::string_view name) {
  for (const ActivationNumbers& numbers : kActivationNumbers)
    if (is_same_name(name, numbers.name)) return numbers;
  return {name};
}

Activation activation_of(Call& call, std::string_view name, std::optional<double> given_alpha,
                         std::optional<double> given_beta) {
  const auto is = [&](std::string_view wanted) { return is_same_name(name, wanted); };
  const ActivationNumbers defaults = activation_numbers(name);
  const double alpha = given_alpha.value_or(defaults.alpha.value_or(0)),
               beta = given_beta.value_or(defaults.beta.value_or(0));
  if (is("Sigmoid")) return [](const Tensor& x) { return x.sigmoid(); };
  if (is("Tanh")) return [](const Tensor& x) { return x.tanh(); };
  if (is("Relu")) return [](const Tensor& x) { return x.relu(); };
  if (is("Affine")) return [=](const Tensor& x) { return x * alpha + beta; };
  if (is("LeakyRelu")) return [=](const Tensor& x) { return x.leaky_relu(alpha); };
  if (is("ThresholdedRelu"))
    return [=](const Tensor& x) { return (x > alpha).where(x, x.zeros_like()); };
  if (is("ScaledTanh")) return [=](const Tensor& x) { return (x * beta).tanh() * alpha; };
  if (is("HardSigmoid")) return [=](const Tensor& x) { return (x * alpha + beta).clamp(0, 1); };
  if (is("Elu")) return [=](const Tensor& x) { return x.elu(alpha); };
  if (is("Selu"))
    return [=](const Tensor& x) {
      return (x < 0).where(beta * alpha * x.minimum(0).expm1(), beta * x);
    };
  if (is("Softsign")) return [](const Tensor& x) { return x.softsign(); };
  if (is("Softplus")) return [](const Tensor& x) { return x.softplus(); };
  call.unsupported(fmt::format("activation {}", name));
}

Tensor activated(Call& call, const Tensor& x) {
  const std::string_view name = call.text("activation", "");
  const std::vector<double> given = call.numbers("activation_params");
  const size_t needed = name == "Clip" || name == "HardSigmoid" ? 2 : name == "LeakyRelu" ? 1 : 0;
  if (given.size() != needed)
    call.wrong(
        fmt::format("activation_params has {} numbers, {} needs {}", given.size(), name, needed));
  if (name.empty()) return x;
  if (name == "Clip") return x.clamp(given[0], given[1]);
  const auto at = [&](size_t i) { return i < needed ? std::optional(given[i]) : std::nullopt; };
  return activation_of(call, name, at(0), at(1))(x);
}

std::span<const OperatorRow> activation_operators() {
  return kActivationRows;
}

}  // namespace plugrad::onnx
