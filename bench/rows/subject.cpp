#include "bench/rows/subject.h"

#include <cmath>

#include "bench/networks/mnist_step.h"
#include "bench/networks/networks.h"
#include "bench/networks/transformer_step.h"
#include "bench/rows/kinds.h"
#include "plugrad/device.h"

namespace plugrad::bench {
namespace {

using Tensors = std::vector<Tensor>;

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

// Indices into `count` rows, as floats.
std::vector<float> random_indices(size_t size, int64_t count, uint32_t seed) {
  std::vector<float> values = random_values(size, seed);
  for (float& value : values)
    value = std::floor((value * 0.5f + 0.5f) * 0.999999f * static_cast<float>(count));
  return values;
}

Subject tensor_subject(const Case& row, const std::string& device) {
  Subject subject{.shapes = row.shapes, .inputs = {}, .round = {}, .result = {}};
  Tensors tensors;
  const int64_t integers = find_kind(row.kind)->integers;
  for (const auto& shape : row.shapes) {
    size_t count = 1;
    for (int64_t size : shape) count *= static_cast<size_t>(size);
    const auto number = subject.inputs.size();
    const auto seed = static_cast<uint32_t>(number + 1);
    const bool is_index = static_cast<int64_t>(number) == integers;
    subject.inputs.push_back(is_index ? random_indices(count, row.shapes[0][0], seed)
                                      : random_values(count, seed));
    const Tensor values = Tensor::from(subject.inputs.back(), Shape(shape), device);
    tensors.push_back(is_index ? values.cast(DType::I32).contiguous() : values);
  }
  Tensor::realize(tensors);
  const auto compute = [row](const Tensors& inputs) { return compute_case(row, inputs); };
  subject.round =
      row.is_jitted ? replaying(compute, tensors) : realizing([=] { return compute(tensors); });
  subject.record = [=] { return compute(tensors); };
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
  // The first loss and all gradients: later losses diverge as soon as Adam divides a gradient near
  // zero by itself.
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

// One call of a whole network with captured weights.
Subject network_subject(const Case& row, const std::string& device) {
  const DeviceScope scope(device.empty() ? Device::default_device() : device);
  const Network network = make_network(row.options.at("network"), row.options.at("batch"));
  Subject subject;
  std::vector<Tensor> inputs = network.data;
  for (const auto& [name, tensor] : network.state) {
    subject.names.push_back(name);
    inputs.push_back(tensor);
  }
  for (const Tensor& tensor : inputs) {
    const auto shape = tensor.shape();
    subject.shapes.emplace_back(shape.begin(), shape.end());
    subject.inputs.push_back(host_values(tensor));
  }
  subject.round = replaying(
      [call = network.call, name = Device::default_device()](const Tensors& data) -> Tensors {
        const DeviceScope inner(name);
        return {call(data)};
      },
      network.data);
  subject.result = [network] { return host_values(network.call(network.data)); };
  return subject;
}

}  // namespace

std::vector<std::vector<float>> random_inputs(const std::vector<std::vector<int64_t>>& shapes) {
  std::vector<std::vector<float>> inputs;
  for (const auto& shape : shapes)
    inputs.push_back(
        random_values(static_cast<size_t>(count(shape)), static_cast<uint32_t>(inputs.size() + 1)));
  return inputs;
}

Subject make_subject(const Case& row, const std::string& device) {
  const auto option = [&](const char* name) { return row.options.at(name).get<int64_t>(); };
  if (row.kind == "network") return network_subject(row, device);
  if (row.kind == "mnist_step")
    return training_subject(std::make_shared<MnistStep>(option("batch")));
  if (row.kind == "transformer_step")
    return training_subject(std::make_shared<TransformerStep>(option("batch"), option("length"),
                                                              option("width"), option("heads")));
  return tensor_subject(row, device);
}

}  // namespace plugrad::bench
