#include "explain/examples.h"

#include "mnist_networks.h"
#include "plugrad/device.h"
#include "plugrad/functional.h"
#include "plugrad/optim.h"
#include "plugrad/sharding.h"

namespace plugrad::tools {
namespace {

// Inputs have values, as in a running program.
Tensor leaf(const Shape& shape) {
  Tensor tensor = Tensor::rand(shape);
  tensor.realize();
  return tensor;
}

std::vector<Tensor> elementwise() {
  return {(leaf({1024}) * leaf({1024}) + leaf({1024})).relu()};
}
std::vector<Tensor> sum() {
  return {(leaf({1 << 20}) * leaf({1 << 20}) + leaf({1 << 20})).relu().sum()};
}
std::vector<Tensor> matmul_bias_relu() {
  return {relu(matmul(leaf({256, 256}), leaf({256, 256})) + leaf({256}))};
}
std::vector<Tensor> convolution() {
  return {relu(conv2d(leaf({8, 32, 28, 28}), leaf({64, 32, 3, 3}), leaf({64})))};
}
std::vector<Tensor> softmax_rows() {
  return {leaf({32, 64}).softmax()};
}
std::vector<Tensor> layer_norm() {
  return {leaf({32, 64}).layernorm()};
}
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

std::vector<Tensor> relu_affine() {
  return {(leaf({1024}) * 2 + 1).relu()};
}
std::vector<Tensor> integers() {
  return {Tensor::from({1, 2, 3, 4}).realize() + 3 + 4};
}
std::vector<Tensor> reduce_rows() {
  return {leaf({256, 256}).sum(1)};
}
std::vector<Tensor> variance() {
  return {leaf({256, 256}).var(1)};
}
std::vector<Tensor> gather_rows() {
  return {leaf({64, 16}).gather(0, Tensor::randint({32, 16}, 0, 64).realize())};
}
std::vector<Tensor> views() {
  return {leaf({8, 4, 16}).permute({2, 0, 1}).reshape({64, 8}) + 1};
}
std::vector<Tensor> gelu_erf() {
  return {leaf({1024}).gelu(false)};
}
std::vector<Tensor> rms_norm_rows() {
  const Tensor x = leaf({32, 64});
  return {x * (x.square().mean(-1, true) + 1e-6).rsqrt() * leaf({64})};
}
std::vector<Tensor> swiglu() {
  const Tensor x = leaf({32, 64});
  return {x.matmul(leaf({64, 64})).silu() * x.matmul(leaf({64, 64}))};
}
std::vector<Tensor> random_numbers() {
  return {Tensor::rand({1024})};
}
std::vector<Tensor> square_gradient() {
  Tensor x = leaf({32, 64});
  return gradient((x * x).sigmoid().mean(), {x});
}

// On two positions of the default device.
Mesh two_positions(const char* axis) {
  return Mesh({{axis, 2}}, {Device::default_device(), Device::default_device()});
}
std::vector<Tensor> data_parallel() {
  const Mesh mesh = two_positions("data");
  const Tensor x = leaf({64, 32}).shard(mesh, {"data"}).realize();
  const Tensor w = leaf({32, 16}).shard(mesh).realize();
  return gradient(relu(x.matmul(w)).mean(), {w});
}
std::vector<Tensor> tensor_parallel() {
  const Mesh mesh = two_positions("model");
  const Tensor x = leaf({16, 32}).shard(mesh).realize();
  const Tensor up = leaf({32, 64}).shard(mesh, {"", "model"}).realize();
  const Tensor down = leaf({64, 32}).shard(mesh, {"model"}).realize();
  return {relu(x.matmul(up)).matmul(down)};
}

constexpr Example kExamples[] = {
    {"relu", "relu(x * 2 + 1) of 1024 floats", relu_affine},
    {"integers", "t + 3 + 4 of 4 integers: one addition of 7", integers},
    {"elementwise", "relu(a * b + c) of 1024 floats", elementwise},
    {"sum", "sum(relu(a * b + c)) of a million floats", sum},
    {"reduce", "sums of 256 rows", reduce_rows},
    {"variance", "variances of 256 rows", variance},
    {"gather", "elements of columns at indices that are data", gather_rows},
    {"views", "a permutation, a reshape, and + 1", views},
    {"matmul", "relu(a b + bias), 256 x 256", matmul_bias_relu},
    {"conv2d", "relu(conv2d(x, w) + bias), 3 x 3", convolution},
    {"softmax", "softmax of 32 rows", softmax_rows},
    {"layernorm", "layernorm of 32 rows", layer_norm},
    {"gelu", "x (1 + erf(x / sqrt 2)) / 2", gelu_erf},
    {"rms_norm", "x / sqrt(mean x^2) * weight of 32 rows", rms_norm_rows},
    {"swiglu", "silu(x gate) * (x up)", swiglu},
    {"rand", "1024 random numbers", random_numbers},
    {"gradient", "the gradient of mean(sigmoid(x * x))", square_gradient},
    {"data_parallel", "the gradient of mean(relu(x w)), the rows of x on two devices",
     data_parallel},
    {"tensor_parallel", "relu(x up) down, the columns of up on two devices", tensor_parallel},
    {"attention", "scaled dot-product attention", attention},
    {"mnist", "the forward pass of the MNIST network", mnist_forward},
};

}  // namespace

std::span<const Example> explain_examples() {
  return kExamples;
}

std::vector<std::string> example_names() {
  std::vector<std::string> names;
  for (const Example& example : kExamples) names.emplace_back(example.name);
  return names;
}

const Example* find_example(std::string_view name) {
  for (const Example& example : kExamples)
    if (name == example.name) return &example;
  return nullptr;
}

}  // namespace plugrad::tools
