// A host loop that calls the step at each position: the reference for scan().
#pragma once

#include <algorithm>
#include <cmath>

#include "jit/jit_test.h"

namespace plugrad {

inline ScanResult unrolled(const ScanStep& step, std::vector<Tensor> state,
                           const std::vector<Tensor>& inputs, bool reverse = false) {
  const int64_t length = inputs[0].size(0);
  std::vector<std::vector<Tensor>> outputs;
  for (int64_t i = 0; i < length; ++i) {
    std::vector<Tensor> here;
    for (const Tensor& x : inputs) here.push_back(x[reverse ? length - 1 - i : i]);
    ScanResult result = step(state, here);
    state = result.state;
    outputs.resize(result.outputs.size());
    for (size_t k = 0; k < outputs.size(); ++k) outputs[k].push_back(result.outputs[k]);
  }
  ScanResult all{state, {}};
  for (auto& each : outputs) {
    if (reverse) std::ranges::reverse(each);
    all.outputs.push_back(stack(each));
  }
  return all;
}

/// Values with no two alike: k-th is sin(0.7 k + seed) / 2.
inline Tensor wave(const Shape& shape, double seed, DType dtype = DType::F32,
                   std::string_view device = {}) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(std::sin(0.7 * static_cast<double>(i) + seed) / 2));
  return Tensor::from<float>(values, shape, device).cast(dtype);
}

inline void expect_near(const Tensor& a, const Tensor& b, double tolerance) {
  ASSERT_EQ(a.bound_shape(), b.bound_shape());
  const auto x = a.cast(DType::F32).to_vector<float>(), y = b.cast(DType::F32).to_vector<float>();
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], tolerance) << "at " << i;
}

}  // namespace plugrad
