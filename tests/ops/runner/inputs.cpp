#include "ops/runner/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace plugrad::ops {
namespace {

// SplitMix64 (Steele, Lea and Flood 2014): the same everywhere.
class Stream {
 public:
  explicit Stream(std::string_view name) {
    for (char c : name) state_ = (state_ ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  }
  double unit() {  // [0, 1)
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_ = 0xcbf29ce484222325u;
};

int64_t count_of(const Shape& shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

double value_in(const Input& input, double unit) {
  if (input.dtype == DType::Bool) return unit < 0.5 ? 1 : 0;
  const double value = input.low + unit * (input.high - input.low);
  return is_float(input.dtype) ? value : std::floor(value);
}

}  // namespace

std::vector<std::vector<double>> input_values(const Entry& entry) {
  std::vector<std::vector<double>> result;
  for (const Input& input : entry.row.inputs) {
    Stream stream(entry.family + "/" + entry.row.name + "/" + std::to_string(result.size()));
    std::vector<double> values = input.values;
    if (!input.literal)
      for (int64_t i = count_of(input.shape); i > 0; --i)
        values.push_back(value_in(input, stream.unit()));
    if (is_float(input.dtype) && input.dtype != DType::F64)  // what is stored, in every form
      values = Tensor::from(values, input.shape).cast(input.dtype).to_vector<double>();
    result.push_back(std::move(values));
  }
  return result;
}

In inputs_of(const Entry& entry, const std::vector<std::vector<double>>& values, bool wide) {
  In result;
  for (size_t i = 0; i < values.size(); ++i) {
    const Input& input = entry.row.inputs[i];
    if (is_float(input.dtype)) {
      const Tensor x = Tensor::from(values[i], input.shape);
      result.push_back(wide ? x : x.cast(input.dtype).realize());
    } else {
      const std::vector<int64_t> whole(values[i].begin(), values[i].end());
      result.push_back(Tensor::from(whole, input.shape).cast(input.dtype).realize());
    }
  }
  return result;
}

std::vector<size_t> differentiated(const Case& row, const std::vector<Tensor>& outputs) {
  std::vector<size_t> places;
  const auto is_real = [](const Tensor& output) { return is_float(output.dtype()); };
  if (std::none_of(outputs.begin(), outputs.end(), is_real)) return places;
  for (size_t i = 0; i < row.inputs.size(); ++i)
    if (row.checks.backward && is_float(row.inputs[i].dtype) && row.inputs[i].gradient)
      places.push_back(i);
  return places;
}

Tensor loss_of(const std::vector<Tensor>& outputs) {
  Tensor loss = Tensor(0.0);
  for (const Tensor& output : outputs) {
    if (!is_float(output.dtype())) continue;
    std::vector<double> weights(static_cast<size_t>(output.numel()));
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] = std::cos(0.3 + 0.5 * static_cast<double>(i));
    const DType wide = output.dtype() == DType::F64 ? DType::F64 : DType::F32;
    const Tensor weight = Tensor::from(weights, output.shape()).cast(wide).realize();
    loss = loss + (output.cast(wide) * weight).sum();
  }
  return loss;
}

std::vector<Tensor> gradients_of(const std::vector<Tensor>& outputs, const In& inputs,
                                 const std::vector<size_t>& places) {
  std::vector<Tensor> targets;
  for (size_t i : places) targets.push_back(inputs[i]);
  return targets.empty() ? targets : gradient(loss_of(outputs), targets);
}

}  // namespace plugrad::ops
