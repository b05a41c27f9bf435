#include "models/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/child_process.h"
#include "onnx_runtime_script.h"
#include "plugrad/numpy.h"
#include "temporary_folder.h"

namespace plugrad::tools {
namespace {

struct Difference {
  double absolute = 0;  // the largest; infinite where one element is NaN or infinite, the other not
  double largest = 0;   // finite element that is wanted
  double relative() const { return largest > 0 ? absolute / largest : absolute; }
};

Difference difference_of(const std::vector<double>& got, const std::vector<double>& wanted) {
  Difference result;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isfinite(wanted[i])) result.largest = std::max(result.largest, std::abs(wanted[i]));
    if (got[i] == wanted[i] || (std::isnan(got[i]) && std::isnan(wanted[i]))) continue;
    const double distance = std::abs(got[i] - wanted[i]);
    result.absolute =
        std::max(result.absolute,
                 std::isfinite(distance) ? distance : std::numeric_limits<double>::infinity());
  }
  return result;
}

// Sums in another order differ by some roundings of their terms, which may be larger than the sum:
// of the largest element, and of terms near 1 before a sigmoid or a difference.
bool is_rounding(const Difference& difference, DType dtype) {
  if (!is_float(dtype)) return difference.absolute == 0;
  const bool is_half = dtype == DType::F16 || dtype == DType::BF16;
  return difference.absolute <=
         (is_half ? 4e-3 : 1e-4) * difference.largest + (is_half ? 1e-3 : 1e-6);
}

// On the CPU, which has all dtypes; 64-bit integers beyond 2^53 are compared as doubles.
std::vector<double> elements_of(const Tensor& tensor) {
  return tensor.to("CPU").cast(DType::F64).to_vector<double>();
}

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
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor wanted = load_npy(folder.file(fmt::format("output_{}.npy", i)), "CPU");
    require(wanted.shape() == outputs[i].shape(),
            "[run] --check: output \"{}\" has the shape {}, in ONNX Runtime {}",
            model.outputs()[i].name, to_string(outputs[i].shape()), to_string(wanted.shape()));
    const Difference difference = difference_of(elements_of(outputs[i]), elements_of(wanted));
    result.differences.push_back(difference.relative());
    result.agrees.push_back(is_rounding(difference, wanted.dtype()));
  }
  return result;
}

}  // namespace plugrad::tools
