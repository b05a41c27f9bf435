#include "onnx_files.h"

#include <fmt/format.h>

#include "bench/harness.h"
#include "models/find_models.h"
#include "models/inputs.h"
#include "plugrad/device.h"
#include "plugrad/error.h"
#include "plugrad/onnx.h"
#include "temporary_folder.h"

namespace plugrad::tools {
namespace {

// A call up to the outputs on the host.
bench::Round calls_on(const std::string& device, const std::string& path,
                      const OnnxChoice& choice) {
  const DeviceScope scope(device);
  const onnx::Model model = onnx::Model::load(path, device);
  const GivenInputs given = given_inputs(model.inputs(), choice.sizes, choice.inputs);
  const std::vector<Tensor> inputs = made_inputs(model.inputs(), given, 0);
  return [=] {
    const DeviceScope inner(device);
    return bench::time_of([&] {
      std::vector<Tensor> outputs =
          with_assumed_sizes(given.assumed, [&] { return model(inputs); });
      Tensor::realize(outputs);
      for (const Tensor& output : outputs) output.to_bytes();
    });
  };
}

bench::Result measure_file(const std::string& name, const std::string& path,
                           const OnnxChoice& choice) {
  const std::string device = Device::default_device();
  const bool is_cpu = device == "CPU" || device.starts_with("CPU:");
  std::vector<bench::Round> rounds = {calls_on(device, path, choice)};
  if (!is_cpu) rounds.push_back(calls_on("CPU", path, choice));
  const auto timings = bench::measure(rounds);
  bench::Result result{.name = name, .value = timings[0].median * 1e3, .unit = "ms"};
  result.higher_is_better = false;
  if (!is_cpu) result.peer = bench::Peer{"plugrad on CPU", timings[1].median * 1e3};
  return result;
}

}  // namespace

bool measure_onnx_files(const OnnxChoice& choice, const bench::Report& report) {
  const TemporaryFolder scratch("bench");
  bool ran = true;
  for (const FoundModel& model : find_models(choice.models, scratch.path())) {
    const std::string name = "onnx/" + model.id;
    if (name.find(choice.filter) == name.npos) continue;
    if (choice.is_listed) {
      report({.name = name, .unit = ""});
      continue;
    }
    try {
      report(measure_file(name, model.path, choice));
    } catch (const Error& error) {
      fmt::print(stderr, "plugrad bench: {}: {}\n", name, error.what());
      ran = false;
    }
  }
  return ran;
}

}  // namespace plugrad::tools
