#include "bench/rows/kinds.h"

#include "plugrad/conv.h"
#include "plugrad/functional.h"

namespace plugrad::bench {
namespace {

using nlohmann::json;
using Tensors = std::vector<Tensor>;
using KindSizes = std::vector<int64_t>;

KindSizes sizes_of(const json& options, const char* name, int64_t otherwise) {
  if (!options.contains(name)) return {otherwise};
  const json& value = options.at(name);
  return value.is_array() ? value.get<KindSizes>() : KindSizes{value.get<int64_t>()};
}

Forward matrix_product(const json& options) {
  const std::string transpose = options.value("transpose", "");
  const bool ta = transpose.find('a') != std::string::npos;
  const bool tb = transpose.find('b') != std::string::npos;
  return [ta, tb](const Tensors& t) {
    return matmul(ta ? t[0].transpose() : t[0], tb ? t[1].transpose() : t[1]);
  };
}

Forward convolution(const json& options) {
  ConvOptions window;
  window.stride = sizes_of(options, "stride", 1);
  window.padding = sizes_of(options, "padding", 0);
  window.dilation = sizes_of(options, "dilation", 1);
  window.groups = options.value("groups", int64_t{1});
  return [window](const Tensors& t) { return conv2d(t[0], t[1], {}, window); };
}

Forward transposed_convolution(const json& options) {
  ConvTransposeOptions window;
  window.stride = sizes_of(options, "stride", 1);
  return [window](const Tensors& t) { return conv_transpose2d(t[0], t[1], {}, window); };
}

Forward attention(const json& options) {
  const bool causal = options.value("causal", false), gqa = options.value("gqa", false);
  return [causal, gqa](const Tensors& t) {
    return scaled_dot_product_attention(t[0], t[1], t[2], {}, causal, 0.0, gqa);
  };
}

Tensor affine(const Tensor& x, const Tensors& t) {
  return t.size() == 3 ? x * t[1] + t[2] : x;
}

// Weights of the channels, which are axis 1.
Tensor channels(const Tensor& weight) {
  return weight.reshape({-1, 1, 1});
}

Tensor normalise_batch(const Tensors& t) {
  const auto [variance, mean] = t[0].var_mean({0, 2, 3}, false, 0);
  return batchnorm(t[0], t[1], t[2], mean, (variance + 1e-5).rsqrt());
}

template <bool is_max>
Forward pooling(const json& options) {
  const int64_t kernel = options.at("kernel");
  PoolOptions window;
  window.stride = sizes_of(options, "stride", kernel);
  window.padding = sizes_of(options, "padding", 0);
  return [kernel, window](const Tensors& t) {
    return is_max ? max_pool2d(t[0], kernel, window) : avg_pool2d(t[0], kernel, window);
  };
}

Forward enlargement(const json& options) {
  const double scale = options.at("scale");
  return [scale](const Tensors& t) { return interpolate(t[0], {.scale = {scale, scale}}); };
}

// Rotary position embedding: rotates pairs of elements half a row apart.
Tensor rotate(const Tensors& t) {
  const int64_t half = t[1].shape()[1] / 2;
  const auto parts = t[0].split(half, -1);
  return t[0] * t[1] + cat({-parts[1], parts[0]}, -1) * t[2];
}

// The new hidden state from an LSTM's gates (input, forget, cell, output) and cell.
Tensor lstm_cell(const Tensors& t) {
  const auto gates = t[0].chunk(4, 1);
  const Tensor cell = gates[1].sigmoid() * t[1] + gates[0].sigmoid() * gates[2].tanh();
  return gates[3].sigmoid() * cell.tanh();
}

// For kinds without options: a function of the inputs.
template <auto compute>
Forward plain(const json&) {
  return compute;
}

}  // namespace

const std::vector<Kind>& kinds() {
  using T = const Tensors&;
  static const std::vector<Kind> table = {
      {"matmul", "products", 2, 2, {"transpose"}, matrix_product},
      {"matvec", "products", 2, 2, {}, matrix_product},
      {"conv2d", "convolutions", 2, 2, {"stride", "padding", "dilation", "groups"}, convolution},
      {"conv_transpose2d", "convolutions", 2, 2, {"stride"}, transposed_convolution},
      {"attention", "attention", 3, 3, {"causal", "gqa"}, attention},
      {"layernorm", "norms", 1, 3, {}, plain<[](T t) { return affine(t[0].layernorm(), t); }>},
      {"rmsnorm", "norms", 2, 2, {}, plain<[](T t) { return rmsnorm(t[0], t[1]); }>},
      {"groupnorm",
       "norms",
       3,
       3,
       {"groups"},
       [](const json& options) -> Forward {
         return [groups = options.at("groups").get<int64_t>()](T t) {
           return groupnorm(t[0], groups, t[1], t[2]);
         };
       }},
      {"batchnorm_train", "norms", 3, 3, {}, plain<normalise_batch>},
      {"softmax", "softmax", 1, 1, {}, plain<[](T t) { return t[0].softmax(); }>},
      {"log_softmax", "softmax", 1, 1, {}, plain<[](T t) { return t[0].log_softmax(); }>},
      {"max_pool2d", "pooling", 1, 1, {"kernel", "stride", "padding"}, pooling<true>},
      {"avg_pool2d", "pooling", 1, 1, {"kernel", "stride", "padding"}, pooling<false>},
      {"global_avg_pool", "pooling", 1, 1, {}, plain<[](T t) { return t[0].mean({2, 3}); }>},
      {"upsample_nearest", "pooling", 1, 1, {"scale"}, enlargement},
      {"embedding", "embedding", 2, 2, {}, plain<[](T t) { return embedding(t[0], t[1]); }>, 1},
      {"map_reduce",
       "elementwise",
       3,
       3,
       {},
       plain<[](T t) { return (t[0] * t[1] + t[2]).relu().sum(); }>},
      {"relu", "elementwise", 1, 1, {}, plain<[](T t) { return t[0].relu(); }>},
      {"relu6", "elementwise", 1, 1, {}, plain<[](T t) { return t[0].relu6(); }>},
      {"sigmoid", "elementwise", 1, 1, {}, plain<[](T t) { return t[0].sigmoid(); }>},
      {"silu", "elementwise", 1, 1, {}, plain<[](T t) { return t[0].silu(); }>},
      {"hardswish", "elementwise", 1, 1, {}, plain<[](T t) { return t[0].hardswish(); }>},
      {"gelu",
       "elementwise",
       1,
       1,
       {"tanh"},
       [](const json& options) -> Forward {
         return [tanh = options.value("tanh", false)](T t) { return t[0].gelu(tanh); };
       }},
      {"bias_gelu", "elementwise", 2, 2, {}, plain<[](T t) { return (t[0] + t[1]).gelu(false); }>},
      {"add", "elementwise", 2, 2, {}, plain<[](T t) { return t[0] + t[1]; }>},
      {"add_relu", "elementwise", 2, 2, {}, plain<[](T t) { return (t[0] + t[1]).relu(); }>},
      {"swiglu", "elementwise", 2, 2, {}, plain<[](T t) { return t[0].silu() * t[1]; }>},
      {"gate", "elementwise", 2, 2, {}, plain<[](T t) { return t[0] * t[1].sigmoid(); }>},
      {"scale_shift_relu",
       "elementwise",
       3,
       3,
       {},
       plain<[](T t) { return (t[0] * channels(t[1]) + channels(t[2])).relu(); }>},
      {"rope", "elementwise", 3, 3, {}, plain<rotate>},
      {"lstm_cell", "elementwise", 2, 2, {}, plain<lstm_cell>},
      {"concat", "elementwise", 2, 8, {}, plain<[](T t) { return cat(t, 1); }>},
  };
  return table;
}

const Kind* find_kind(const std::string& name) {
  for (const Kind& kind : kinds())
    if (name == kind.name) return &kind;
  return nullptr;
}

std::vector<Tensor> compute_case(const Case& row, const std::vector<Tensor>& inputs) {
  const Kind& kind = *find_kind(row.kind);
  const Forward forward = kind.make(row.options);
  if (!row.options.value("gradients", false)) return {forward(inputs)};
  const Tensors of(inputs.begin(), inputs.end() - 1);
  const Tensor y = forward(of);
  Tensors wanted;
  for (size_t i = 0; i < of.size(); ++i)
    if (static_cast<int64_t>(i) != kind.integers) wanted.push_back(of[i]);
  Tensors results = {y};
  for (const Tensor& one : gradient(y, wanted, inputs.back())) results.push_back(one);
  return results;
}

}  // namespace plugrad::bench
