// Meshes and expectations that the tests of sharded tensors share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "oracle/measured.h"
#include "plugrad/plugrad.h"
#include "tensor/handles.h"

namespace plugrad {

inline Mesh two() {
  return Mesh({{"data", 2}}, {"CPU", "REFERENCE"});
}
inline Mesh four() {
  return Mesh({{"data", 4}}, {"CPU", "REFERENCE", "CPU", "REFERENCE"});
}
inline Mesh two_by_two() {
  return Mesh({{"data", 2}, {"model", 2}}, {"CPU", "CPU", "REFERENCE", "REFERENCE"});
}

inline Tensor counting(const Shape& shape, double first = -3.0, double step = 0.5) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(first + step * static_cast<double>(i));
  return Tensor::from(values, shape, "CPU");
}

/// Every element is within the error that the order of sums permits of the evaluator's value.
inline void expect_as_evaluated(const Tensor& actual, const std::string& what = {}) {
  engine::TensorState* state = tensor::state_of(actual).get();
  const auto want = oracle::evaluate_measured(std::span(&state, 1))[0];
  const std::vector<double> values = actual.to_vector<double>();
  ASSERT_EQ(values.size(), want.value.size()) << what;
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = want.value.real(i);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(values[i])) << what << " element " << i << " is " << values[i];
      continue;
    }
    EXPECT_LE(std::abs(values[i] - expected), want.error_of(i) + 1e-30)
        << what << " element " << i << " is " << values[i] << ", expected " << expected;
  }
}

/// Runs `f` and returns the message of the Error that it throws.
template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace plugrad
