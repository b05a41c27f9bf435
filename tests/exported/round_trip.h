// Functions of tensors written as ONNX files and loaded again, and files for
// tests/python/onnx/exported_files.py, which gives them to ONNX Runtime.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "plugrad/onnx.h"
#include "plugrad/plugrad.h"
#include "unit/base/temporary_directory.h"

namespace plugrad::exported {

/// A folder for NAME.onnx with NAME.safetensors: inputs, outputs and errors, each by number. The
/// environment names it (PLUGRAD_TEST_ONNX); otherwise it is a temporary one, of one file.
class Folder {
 public:
  Folder() : kept_(std::getenv("PLUGRAD_TEST_ONNX")) {
    if (kept_) std::filesystem::create_directories(kept_);
  }

  /// The outputs of the file on the inputs. `parameters`: tensors that the function reads, by name.
  std::vector<Tensor> round_trip(const std::string& name, const onnx::TensorFunction& function,
                                 const std::vector<Tensor>& inputs,
                                 const nn::StateDict& parameters = {}) const {
    const std::string path = kept_ ? fmt::format("{}/{}.onnx", kept_, name) : own_ / "one.onnx";
    onnx::SaveOptions options;
    options.parameters = parameters;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      options.input_names.push_back(fmt::format("input.{}", i));
    onnx::save(function, inputs, path, options);
    return onnx::Model::load(path)(inputs);
  }

  /// Keeps the values for ONNX Runtime; `errors` are the permitted ones of each output's elements.
  void keep(const std::string& name, const std::vector<Tensor>& inputs,
            const std::vector<Tensor>& outputs,
            const std::vector<std::vector<double>>& errors) const {
    if (!kept_) return;
    nn::StateDict values;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      values.emplace_back(fmt::format("input.{}", i), inputs[i].contiguous());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      values.emplace_back(fmt::format("output.{}", i), outputs[i].contiguous());
      values.emplace_back(fmt::format("error.{}", i), Tensor::from(errors[i], outputs[i].shape()));
    }
    nn::save_state(values, fmt::format("{}/{}.safetensors", kept_, name));
  }

 private:
  const char* kept_;
  TemporaryDirectory own_;
};

/// The first element that differs by more than permitted, or another shape or dtype; else empty.
inline std::string difference(const Tensor& got, const Tensor& wanted,
                              const std::vector<double>& errors) {
  if (got.dtype() != wanted.dtype() || got.shape() != wanted.shape())
    return fmt::format("{} {} instead of {} {}", to_string(got.shape()), name_of(got.dtype()),
                       to_string(wanted.shape()), name_of(wanted.dtype()));
  const auto a = got.cast(DType::F64).to_vector<double>();
  const auto b = wanted.cast(DType::F64).to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool agrees = std::isnan(a[i]) || std::isnan(b[i])
                            ? std::isnan(a[i]) == std::isnan(b[i])
                            : a[i] == b[i] || std::fabs(a[i] - b[i]) <= errors[i];
    if (!agrees && !std::isinf(errors[i]))
      return fmt::format("element {}: {} instead of {} (permitted error {})", i, a[i], b[i],
                         errors[i]);
  }
  return {};
}

/// The largest difference from `wanted`, as a part of its largest element.
inline double relative_difference(const Tensor& got, const Tensor& wanted) {
  const Tensor difference = (got - wanted).abs().max(), scale = wanted.abs().max();
  return (difference / scale.maximum(1e-30)).item<double>();
}

}  // namespace plugrad::exported
