// The stages "record" and "outputs": a whole network on the device under test, and on another.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "models/halves.h"
#include "models/outputs.h"
#include "networks/stages.h"
#include "plugrad/device.h"
#include "plugrad/numpy.h"

namespace plugrad::tools {
namespace {

// Loading, compiling and running take this long at most, times the factor.
constexpr double kLimitSeconds = 300;

std::vector<Tensor> run(const onnx::Model& model, const NetworkTarget& target, int calls) {
  const GivenInputs given = given_inputs(model.inputs(), target.sizes, target.inputs);
  const std::vector<Tensor> inputs = made_inputs(model.inputs(), given, target.seed);
  return with_assumed_sizes(given.assumed, [&] {
    std::vector<Tensor> outputs;
    for (int i = 0; i < calls; ++i) {
      outputs = model(inputs);
      Tensor::realize(outputs);
    }
    return outputs;
  });
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
  const bool has_halves = computes_with_halves(target.model);
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
    const OutputDifference difference = difference_of(got, wanted[i], has_halves);
    worst = std::max(worst, difference.relative);
    if (!difference.is_rounding)
      different.push_back(
          fmt::format("{} by {:.1e} of its largest element", name, difference.relative));
  }
  tell({{"worst", worst}, {"different", fmt::format("{}", fmt::join(different, ", "))}});
}

}  // namespace plugrad::tools
