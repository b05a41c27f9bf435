// The stages "record" and "outputs": a whole network on the device under test, and on another.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "models/outputs.h"
#include "networks/stages.h"
#include "plugrad/device.h"
#include "plugrad/numpy.h"
#include "training_networks.h"

namespace plugrad::tools {
namespace {

// Loading, compiling and running take this long at most, times the factor.
constexpr double kLimitSeconds = 300;

// The number given, else floats from 0 to 1 and integers 0 or 1, the same on every device.
Tensor input_of(const onnx::ValueInfo& input, const NetworkTarget& target, Numbers& numbers) {
  require(input.dtype.has_value(), "[conformance] input \"{}\" is a {}; only tensors can be made",
          input.name, input.type);
  const Shape shape = shape_of(input, target.sizes, open_axis_size);
  if (const auto given = target.inputs.find(input.name); given != target.inputs.end()) {
    const auto number = parse_number(given->second);
    require(number.has_value(), "[conformance] --input {}={} is no number", input.name,
            given->second);
    return Tensor::full(shape, *number, *input.dtype).contiguous().realize();
  }
  size_t count = 1;
  for (const int64_t size : shape) count *= static_cast<size_t>(size);
  std::vector<float> values(count);
  for (float& value : values)
    value = is_float(*input.dtype)
                ? static_cast<float>(0x1p-24 * static_cast<double>(numbers.next() >> 40))
                : static_cast<float>(numbers.next() >> 63);
  return Tensor::from(values, shape).cast(*input.dtype).contiguous().realize();
}

std::vector<Tensor> run(const onnx::Model& model, const NetworkTarget& target, int calls) {
  Numbers numbers(target.seed);
  std::vector<Tensor> inputs, outputs;
  for (const onnx::ValueInfo& input : model.inputs())
    inputs.push_back(input_of(input, target, numbers));
  for (int i = 0; i < calls; ++i) {
    outputs = model(inputs);
    Tensor::realize(outputs);
  }
  return outputs;
}

std::string output_file(const NetworkTarget& target, size_t number) {
  return fmt::format("{}/output_{}.npy", target.folder, number);
}

}  // namespace

// Two calls: the second replays what the first recorded, with prepared constants.
void record_network(const NetworkTarget& target) {
  const TimeLimit limit(kLimitSeconds * target.device.time_limit_factor);
  tell({{"device", select_device(target.device)}});
  const onnx::Model model = onnx::Model::load(target.model);
  const std::vector<Tensor> outputs = run(model, target, 2);
  for (size_t i = 0; i < outputs.size(); ++i) save_npy(outputs[i], output_file(target, i));
  tell({{"outputs", outputs.size()}});
}

void compare_outputs(const NetworkTarget& target) {
  Device::set_default_device(target.expected);
  const onnx::Model model = onnx::Model::load(target.model);
  const std::vector<Tensor> wanted = run(model, target, 1);
  std::vector<std::string> different;
  double worst = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Tensor got = load_npy(output_file(target, i), "CPU");
    const std::string& name = model.outputs()[i].name;
    if (got.shape() != wanted[i].shape()) {
      different.push_back(fmt::format("{} has the shape {}, on {} {}", name, to_string(got.shape()),
                                      target.expected, to_string(wanted[i].shape())));
      continue;
    }
    const OutputDifference difference = difference_of(got, wanted[i]);
    worst = std::max(worst, difference.relative);
    if (!difference.is_rounding)
      different.push_back(
          fmt::format("{} by {:.1e} of its largest element", name, difference.relative));
  }
  tell({{"worst", worst}, {"different", fmt::format("{}", fmt::join(different, ", "))}});
}

}  // namespace plugrad::tools
