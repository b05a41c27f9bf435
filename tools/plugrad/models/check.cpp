#include "models/check.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/child_process.h"
#include "models/halves.h"
#include "onnx_runtime_script.h"
#include "plugrad/numpy.h"
#include "temporary_folder.h"

namespace plugrad::tools {
namespace {

void write_call(const TemporaryFolder& folder, const onnx::Model& model,
                const std::vector<Tensor>& inputs) {
  nlohmann::json call = {{"inputs", nlohmann::json::array()}, {"outputs", nlohmann::json::array()}};
  for (const onnx::ValueInfo& input : model.inputs()) call["inputs"].push_back(input.name);
  for (const onnx::ValueInfo& output : model.outputs()) call["outputs"].push_back(output.name);
  std::ofstream(folder.file("call.json")) << call.dump();
  for (size_t i = 0; i < inputs.size(); ++i)
    save_npy(inputs[i], folder.file(fmt::format("input_{}.npy", i)));
}

}  // namespace

Comparison compare_with_onnx_runtime(const std::string& path, const onnx::Model& model,
                                     const std::vector<Tensor>& inputs,
                                     const std::vector<Tensor>& outputs) {
  const TemporaryFolder folder("run");
  write_call(folder, model, inputs);
  Comparison result;
  const std::string script = folder.file("onnx_runtime.py");
  std::ofstream(script) << kOnnxRuntimePy;
  try {
    result.version = output_of({.program = "python3", .arguments = {script, path, folder.path()}});
  } catch (const std::runtime_error& error) {
    fail(ErrorKind::User, "[run] --check: ONNX Runtime did not run the model: {}", error.what());
  }
  while (!result.version.empty() && result.version.back() == '\n') result.version.pop_back();
  const bool has_halves = computes_with_halves(path);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor wanted = load_npy(folder.file(fmt::format("output_{}.npy", i)), "CPU");
    require(wanted.shape() == outputs[i].shape(),
            "[run] --check: output \"{}\" has the shape {}, in ONNX Runtime {}",
            model.outputs()[i].name, to_string(outputs[i].shape()), to_string(wanted.shape()));
    result.outputs.push_back(difference_of(outputs[i], wanted, has_halves));
  }
  return result;
}

}  // namespace plugrad::tools
