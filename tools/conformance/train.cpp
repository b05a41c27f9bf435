// Trains a model on a device and compares every step with the evaluator, which also gives an error
// bound for each value.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <stdexcept>

#include "base/settings.h"
#include "engine/session.h"
#include "models.h"
#include "oracle/measured.h"
#include "plugrad/device.h"
#include "plugrad/error.h"
#include "runtime/registry.h"
#include "tensor/handles.h"
#include "training_networks.h"

namespace plugrad::tools {
namespace {

using conformance::Status;
using conformance::TestResult;

constexpr int kSteps = 4;
constexpr double kRate = 0.2, kMomentum = 0.9;
// The bounds are first-order; the factor covers products of two rounding errors.
constexpr double kAllowed = 2;
// A bound above kLoosest times the tensor's largest value is useless: it arises if two compared
// values lie within their errors of each other, or if a gradient is zero except for rounding. If
// more than kMostUnknown of the values have such bounds, too little is compared.
constexpr double kLoosest = 0.1, kMostUnknown = 0.05;

struct Named {
  std::string name;
  Tensor tensor;
};

// Compares each stored value with the evaluator's result from the previously stored values.
class TrainingComparison {
 public:
  // Computes the tensors and compares them.
  void take(const std::vector<Named>& tensors) {
    std::vector<engine::TensorState*> states;
    std::vector<Tensor> all;
    for (const Named& named : tensors) {
      states.push_back(tensor::state_of(named.tensor).get());
      all.push_back(named.tensor);
    }
    const auto expected = oracle::evaluate_measured(states, oracle::Leaf::Kept);
    Tensor::realize(all);
    for (size_t i = 0; i < tensors.size(); ++i) compare(tensors[i], expected[i]);
  }

  int step = 0;
  double worst = 0;
  std::string where, fault;
  uint64_t elements = 0, unknown = 0;

 private:
  void compare(const Named& named, const oracle::Measured& expected) {
    const Tensor& tensor = named.tensor;
    const oracle::Array got = oracle::from_bytes(tensor.dtype(), tensor.shape(), tensor.to_bytes());
    double scale = 0;
    for (size_t i = 0; i < got.size(); ++i)
      scale = std::max(scale, std::fabs(expected.value.real(i)));
    for (size_t i = 0; i < got.size(); ++i) {
      ++elements;
      unknown += !(expected.error_of(i) <= kLoosest * scale);
      compare(fmt::format("step {}, {}[{}]", step, named.name, i), expected.value.real(i),
              got.real(i), expected.error_of(i));
    }
  }

  void compare(const std::string& name, double want, double got, double error) {
    if (want == got || std::isinf(error) || (std::isnan(want) && std::isnan(got))) return;
    const double ratio = error > 0 ? std::fabs(want - got) / error : INFINITY;
    if (!(ratio <= worst)) worst = ratio, where = name;
    if (!(ratio <= kAllowed) && fault.empty())
      fault = fmt::format("{} is {}, the evaluator has {} (a correct device is within {})", name,
                          got, want, kAllowed * error);
  }
};

// Initialises weights deterministically, because the device's random numbers are not under test.
// Scales, shifts and biases keep their initial values or become 0.
void set_weights(const nn::StateDict& state, Numbers& numbers) {
  nn::StateDict values;
  for (const auto& [name, tensor] : state) {
    if (!tensor.requires_grad()) continue;
    if (tensor.ndim() < 2) {
      values.emplace_back(name, name.ends_with("bias") ? Tensor::zeros(tensor.shape())
                                                       : Tensor::ones(tensor.shape()));
      continue;
    }
    double inputs = 1;
    for (int64_t axis = 1; axis < tensor.ndim(); ++axis)
      inputs *= static_cast<double>(tensor.size(axis));
    values.emplace_back(name, numbers.reals(tensor.shape(), 1 / std::sqrt(inputs)));
  }
  nn::load_state(state, values, nn::Loading::NotStrict);
}

struct Losses {
  double first = 0, last = 0;
};

template <class Net>
Losses train(TrainingComparison& comparison) {
  Numbers numbers(1);
  Net net;
  const nn::StateDict state = nn::state_dict(net);
  set_weights(state, numbers);
  net.make_data(numbers);
  optim::SGD optimizer(nn::parameters(net), {.lr = kRate, .momentum = kMomentum});
  const Keep keep = [&](const char* name, const Tensor& value) {
    comparison.take({{name, value}});
    return value;
  };
  Losses losses;
  for (comparison.step = 1; comparison.step <= kSteps; ++comparison.step) {
    optimizer.zero_grad();
    const Tensor loss = net.loss(keep);
    comparison.take({{"the loss", loss}});
    loss.backward();
    std::vector<Named> gradients, values;
    for (const auto& [name, tensor] : state) {
      if (tensor.requires_grad()) gradients.push_back({"gradient of " + name, tensor.grad()});
      values.push_back({name, tensor});
    }
    comparison.take(gradients);
    optimizer.record_step();
    comparison.take(values);
    (comparison.step == 1 ? losses.first : losses.last) = loss.item<double>();
  }
  return losses;
}

Losses train_named(const std::string& name, TrainingComparison& result) {
  if (name == Mlp::kName) return train<Mlp>(result);
  if (name == Convnet::kName) return train<Convnet>(result);
  if (name == Transformer::kName) return train<Transformer>(result);
  throw std::invalid_argument(fmt::format("there is no model {}", name));
}

void judge(const TrainingComparison& comparison, const Losses& losses, TestResult& result) {
  result.metric = "error/bound";
  result.worst = comparison.worst;
  result.worst_input = comparison.where;
  const double unknown =
      static_cast<double>(comparison.unknown) / static_cast<double>(comparison.elements);
  if (!comparison.fault.empty())
    result.message = comparison.fault;
  else if (!(losses.last < losses.first))
    result.message = fmt::format("the loss went from {} to {} in {} steps: nothing was learned",
                                 losses.first, losses.last, kSteps);
  else if (unknown > kMostUnknown)
    result.message = fmt::format("{} of {} values could not be compared", comparison.unknown,
                                 comparison.elements);
  result.status = result.message.empty() ? Status::Pass : Status::Fail;
}

}  // namespace

std::string select_device(const ModelTarget& target) {
  const std::string device = add_plugin(std::filesystem::absolute(target.plugin_path).string());
  runtime::Registry::instance().set_plugin_options(
      device, {target.device_options.begin(), target.device_options.end()});
  const std::string name = fmt::format("{}:{}", device, target.device_index);
  Device::set_default_device(name);
  return name;
}

std::vector<std::string> model_names() {
  return {Mlp::kName, Convnet::kName, Transformer::kName};
}

TestResult train_model(const std::string& name, const ModelTarget& target) {
  TestResult result;
  // The evaluator rounds after every operation, so that contraction is disabled.
  const SettingScope scope([](Settings& s) { s.contract = false; });
  try {
    select_device(target);
    TrainingComparison comparison;
    const Losses losses = train_named(name, comparison);
    judge(comparison, losses, result);
  } catch (const Error& error) {
    result.status = error.kind() == ErrorKind::Unsupported ? Status::Unsupported : Status::Fail;
    result.message = error.what();
  }
  return result;
}

}  // namespace plugrad::tools
