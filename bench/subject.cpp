#include "bench/subject.h"

#include <map>

#include "bench/mnist_step.h"
#include "bench/transformer_step.h"
#include "plugrad/conv.h"
#include "plugrad/functional.h"

namespace plugrad::bench {
namespace {

using Tensors = std::vector<Tensor>;
using Compute = std::function<Tensors(const Tensors& inputs)>;

// Reproducible numbers in [-1, 1).
std::vector<float> random_values(size_t count, uint32_t seed) {
  std::vector<float> values(count);
  uint32_t state = seed * 2654435761u + 1;
  for (float& value : values) {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    value = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
  }
  return values;
}

Compute product(const Case& row) {
  const std::string transpose = row.options.value("transpose", "");
  const bool ta = transpose.find('a') != std::string::npos;
  const bool tb = transpose.find('b') != std::string::npos;
  return [ta, tb](const Tensors& t) -> Tensors {
    return {matmul(ta ? t[0].transpose() : t[0], tb ? t[1].transpose() : t[1])};
  };
}

Compute convolution(const Case& row) {
  ConvOptions options;
  options.stride = row.options.at("stride").get<int64_t>();
  options.padding = row.options.at("padding").get<int64_t>();
  options.groups = row.options.at("groups");
  return [options](const Tensors& t) -> Tensors {
    const Tensor y = conv2d(t[0], t[1], {}, options);
    if (t.size() == 2) return {y};
    const Tensors gradients = gradient(y, {t[0], t[1]}, t[2]);
    return {y, gradients[0], gradients[1]};
  };
}

Compute computation(const Case& row) {
  if (row.kind == "matmul" || row.kind == "matvec") return product(row);
  if (row.kind == "conv2d") return convolution(row);
  static const std::map<std::string, Compute> others = {
      {"map_reduce",
       [](const Tensors& t) -> Tensors { return {(t[0] * t[1] + t[2]).relu().sum()}; }},
      {"softmax", [](const Tensors& t) -> Tensors { return {t[0].softmax()}; }},
      {"layernorm", [](const Tensors& t) -> Tensors { return {t[0].layernorm()}; }},
      {"attention",
       [](const Tensors& t) -> Tensors {
         return {scaled_dot_product_attention(t[0], t[1], t[2])};
       }},
  };
  return others.at(row.kind);
}

Subject tensor_subject(const Case& row, const std::string& device) {
  Subject subject{.shapes = row.shapes, .inputs = {}, .round = {}, .result = {}};
  Tensors tensors;
  for (const auto& shape : row.shapes) {
    size_t count = 1;
    for (int64_t size : shape) count *= static_cast<size_t>(size);
    const auto seed = static_cast<uint32_t>(subject.inputs.size() + 1);
    subject.inputs.push_back(random_values(count, seed));
    tensors.push_back(Tensor::from(subject.inputs.back(), Shape(shape), device));
  }
  Tensor::realize(tensors);
  const Compute compute = computation(row);
  subject.round = realizing([=] { return compute(tensors); });
  subject.result = [=] {
    Tensors made = compute(tensors);
    Tensor::realize(made);
    std::vector<float> all;
    for (const Tensor& tensor : made) {
      const auto values = tensor.to_vector<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  return subject;
}

std::vector<float> host_values(const Tensor& tensor) {
  return tensor.cast(DType::F32).to_vector<float>();
}

template <class Step>
Subject training_subject(std::shared_ptr<Step> step) {
  Subject subject;
  std::vector<Tensor> inputs = step->data(), parameters = step->parameters();
  inputs.insert(inputs.end(), parameters.begin(), parameters.end());
  for (const Tensor& tensor : inputs) {
    const auto shape = tensor.shape();
    subject.shapes.emplace_back(shape.begin(), shape.end());
    subject.inputs.push_back(host_values(tensor));
  }
  subject.round = [step] { return time_of([&] { step->run(); }); };
  // The first loss and all gradients: later losses differ as soon as Adam has divided a gradient
  // near zero by itself.
  subject.result = [step, parameters] {
    std::vector<float> all = {static_cast<float>(step->run())};
    for (const Tensor& parameter : parameters) {
      const auto values = host_values(parameter.grad());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  return subject;
}

}  // namespace

Subject make_subject(const Case& row, const std::string& device) {
  const auto option = [&](const char* name) { return row.options.at(name).get<int64_t>(); };
  if (row.kind == "mnist_step")
    return training_subject(std::make_shared<MnistStep>(option("batch")));
  if (row.kind == "transformer_step")
    return training_subject(std::make_shared<TransformerStep>(option("batch"), option("length"),
                                                              option("width"), option("heads")));
  return tensor_subject(row, device);
}

}  // namespace plugrad::bench
