// plugrad run: runs a model from an ONNX file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/file.h"
#include "command.h"
#include "models/check.h"
#include "models/inputs.h"
#include "models/outputs.h"
#include "onnx/file/file_errors.h"
#include "onnx/file/messages.h"
#include "onnx/import/declared.h"
#include "plugrad/device.h"
#include "plugrad/numpy.h"
#include "plugrad/onnx.h"

namespace plugrad::tools {
namespace {

using Json = nlohmann::ordered_json;

double milliseconds_of(const onnx::Model& model, const std::vector<Tensor>& inputs,
                       std::vector<Tensor>& outputs) {
  const auto start = std::chrono::steady_clock::now();
  outputs = model(inputs);
  Tensor::realize(outputs);
  for (const Tensor& output : outputs) output.to_bytes();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// Least, greatest and mean of the elements that are numbers, and how many are none.
std::string summary_of(const Tensor& x) {
  std::string text = fmt::format("{} {}", name_of(x.dtype()), to_string(x.shape()));
  if (x.dtype() == DType::Bool) return text;
  std::vector<double> numbers = elements_of(x);
  const size_t nans = std::erase_if(numbers, [](double number) { return std::isnan(number); });
  if (!numbers.empty()) {
    const auto [least, greatest] = std::ranges::minmax(numbers);
    const double sum = std::accumulate(numbers.begin(), numbers.end(), 0.0);
    text += fmt::format(", {:.6g} to {:.6g}, mean {:.6g}", least, greatest,
                        sum / static_cast<double>(numbers.size()));
  }
  return nans == 0 ? text : text + fmt::format(", {} NaN", nans);
}

// After --check, how far an output is from ONNX Runtime's.
std::string verdict_of(const Json& output) {
  if (!output.contains("difference")) return "";
  const double relative = output["relative_tolerance"], absolute = output["absolute_tolerance"];
  return fmt::format(
      "  {} ONNX Runtime: largest difference {:.1e} of the largest element; allowed: {}\n",
      output["agrees"].get<bool>() ? "agrees with" : "DIFFERS from",
      output["difference"].get<double>(),
      relative == 0 ? "none, of integers" : fmt::format("{:g} of it and {:g}", relative, absolute));
}

// The names of inputs that no option gives.
std::string random_inputs(const onnx::Model& model, const GivenInputs& given) {
  std::vector<std::string> names = names_of(model.inputs());
  std::erase_if(names, [&](const std::string& name) { return given.tensors.contains(name); });
  return fmt::format("{}", fmt::join(names, ", "));
}

// Loads the model. Errors: UsageError for bounds of names that it does not have.
onnx::Model model_with(const std::string& path, const Names& bounds) {
  const onnx::SizeBounds numbers = bounds_of(bounds);
  if (!bounds.empty()) {
    const MappedFile file(path, "onnx");
    const auto message = onnx::with_name(path, [&] { return onnx::read_model(file.bytes()); });
    auto inputs = onnx::declared_inputs(message);
    std::ranges::copy(onnx::defaulted_inputs(message), std::back_inserter(inputs));
    require_names("bounds", bounds, open_sizes(onnx::infos_of(inputs)));
  }
  return onnx::Model::load(path, {}, numbers);
}

// Adds the comparison to the document. Returns whether all outputs agree.
bool compare(const std::string& path, const onnx::Model& model, const std::vector<Tensor>& inputs,
             const std::vector<Tensor>& outputs, Json& document) {
  const Comparison comparison = compare_with_onnx_runtime(path, model, inputs, outputs);
  document["onnx_runtime"] = comparison.version;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputDifference& difference = comparison.outputs[i];
    document["outputs"][i]["difference"] = difference.relative;
    document["outputs"][i]["relative_tolerance"] = difference.allowed.relative;
    document["outputs"][i]["absolute_tolerance"] = difference.allowed.absolute;
    document["outputs"][i]["agrees"] = difference.is_rounding;
  }
  return std::ranges::all_of(comparison.outputs, &OutputDifference::is_rounding);
}

void print_run(const Json& document, const std::vector<Tensor>& outputs, int64_t repeat) {
  for (size_t i = 0; i < outputs.size(); ++i)
    fmt::print("{}: {}\n{}", document["outputs"][i]["name"].get<std::string>(),
               summary_of(outputs[i]), verdict_of(document["outputs"][i]));
  fmt::print("first call {:.1f} ms", document["first_ms"].get<double>());
  if (document.contains("call_ms"))
    fmt::print(", then {:.3f} ms (median of {})", document["call_ms"].get<double>(), repeat);
  fmt::print(" on {}\n", document["device"].get<std::string>());
}

}  // namespace

int run_run(const Arguments& arguments) {
  const Syntax syntax = run_syntax();
  const Parsed parsed = parse(arguments, syntax);
  if (parsed.help) return kSuccess;
  const auto files = parsed.has("file") ? parsed.get<Arguments>("file") : Arguments();
  if (files.size() != 1) throw UsageError(fmt::format("say which model\nusage: {}", syntax.usage));
  const auto pairs = [&](const char* option) {
    return parsed.has(option) ? parse_key_values(parsed.get<Arguments>(option), option) : Names();
  };
  const int64_t repeat = parsed.has("repeat") ? parsed.get<int64_t>("repeat") : 0;
  if (repeat < 0)
    throw UsageError(fmt::format("--repeat must be 0 or more\nusage: {}", syntax.usage));
  if (parsed.has("device")) choose_device(parsed.get<std::string>("device"));
  const onnx::Model model = model_with(files[0], pairs("bounds"));
  const Names texts = pairs("input"), wanted = pairs("output"), sizes = pairs("size");
  require_names("input", texts, names_of(model.inputs()));
  require_names("output", wanted, names_of(model.outputs()));
  require_names("size", sizes, open_sizes(model.inputs()));
  const GivenInputs given = given_inputs(model.inputs(), sizes, texts);
  const std::vector<Tensor> inputs = made_inputs(model.inputs(), given, 0);
  std::vector<Tensor> outputs;
  const double first =
      with_assumed_sizes(given.assumed, [&] { return milliseconds_of(model, inputs, outputs); });
  std::vector<double> times;
  for (int64_t i = 0; i < repeat; ++i) times.push_back(milliseconds_of(model, inputs, outputs));
  std::ranges::sort(times);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (const auto to = wanted.find(model.outputs()[i].name); to != wanted.end())
      save_npy(outputs[i], to->second);
  Json document = {{"model", files[0]}, {"device", Device::default_device()}, {"first_ms", first}};
  if (!times.empty()) document["call_ms"] = times[times.size() / 2];
  document["outputs"] = Json::array();
  for (size_t i = 0; i < outputs.size(); ++i)
    document["outputs"].push_back({{"name", model.outputs()[i].name},
                                   {"dtype", name_of(outputs[i].dtype())},
                                   {"shape", outputs[i].shape()}});
  const bool agrees = !parsed.has("check") || compare(files[0], model, inputs, outputs, document);
  const ExitCode code = agrees ? kSuccess : kFailure;
  if (parsed.has("json")) return print_json(document), code;
  print_run(document, outputs, repeat);
  if (!parsed.has("check")) return code;
  fmt::print("{} ONNX Runtime {}\n", agrees ? "agrees with" : "differs from",
             document["onnx_runtime"].get<std::string>());
  if (const std::string random = random_inputs(model, given); !agrees && !random.empty())
    fmt::print(
        "random numbers were given for {}, of which a model may magnify roundings; give numbers "
        "that suit it with --input\n",
        random);
  return code;
}

}  // namespace plugrad::tools
