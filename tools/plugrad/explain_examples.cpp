#include "explain_examples.h"

#include "mnist_networks.h"
#include "plugrad/functional.h"
#include "plugrad/optim.h"

namespace plugrad::tools {
namespace {

// Leaves have values, as in a program that has begun.
Tensor leaf(const Shape& shape) {
  Tensor tensor = Tensor::rand(shape);
  tensor.realize();
  return tensor;
}

std::vector<Tensor> elementwise() { return {(leaf({1024}) * leaf({1024}) + leaf({1024})).relu()}; }
std::vector<Tensor> sum() { return {(leaf({1 << 20}) * leaf({1 << 20}) + leaf({1 << 20})).relu().sum()}; }
std::vector<Tensor> matmul_bias_relu() {
  return {relu(matmul(leaf({256, 256}), leaf({256, 256})) + leaf({256}))};
}
std::vector<Tensor> convolution() {
  return {relu(conv2d(leaf({8, 32, 28, 28}), leaf({64, 32, 3, 3}), leaf({64})))};
}
std::vector<Tensor> softmax_rows() { return {leaf({32, 64}).softmax()}; }
std::vector<Tensor> layer_norm() { return {leaf({32, 64}).layernorm()}; }
std::vector<Tensor> attention() {
  Tensor q = leaf({2, 4, 16, 8}), k = leaf({2, 4, 16, 8}), v = leaf({2, 4, 16, 8});
  return {scaled_dot_product_attention(q, k, v)};
}
std::vector<Tensor> mnist_forward() {
  MnistCnn net;
  nn::TrainingScope evaluation(false);
  Tensor::realize(nn::parameters(net));
  return {net(leaf({32, 1, 28, 28}))};
}

constexpr Example kExamples[] = {
    {"elementwise", "relu(a * b + c) of 1024 floats", elementwise},
    {"sum", "sum(relu(a * b + c)) of a million floats", sum},
    {"matmul", "relu(a b + bias), 256 x 256", matmul_bias_relu},
    {"conv2d", "relu(conv2d(x, w) + bias), 3 x 3", convolution},
    {"softmax", "softmax of 32 rows", softmax_rows},
    {"layernorm", "layernorm of 32 rows", layer_norm},
    {"attention", "scaled dot-product attention", attention},
    {"mnist", "the forward pass of the MNIST network", mnist_forward},
};

}  // namespace

std::span<const Example> explain_examples() { return kExamples; }

const Example* find_example(std::string_view name) {
  for (const Example& example : kExamples)
    if (name == example.name) return &example;
  return nullptr;
}

}  // namespace plugrad::tools
