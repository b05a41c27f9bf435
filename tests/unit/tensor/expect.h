// Reads tensor values in tests: through the evaluator, which needs no device, or from the default
// device if PLUGRAD_TEST_RUNS is set.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "oracle/evaluator.h"
#include "plugrad/plugrad.h"
#include "tensor/handles.h"

namespace plugrad {

inline std::vector<double> values(const Tensor& t) {
  static const bool runs = std::getenv("PLUGRAD_TEST_RUNS") != nullptr;
  if (runs) return t.to_vector<double>();
  try {
    const oracle::Array array = oracle::evaluate(*tensor::state_of(t));
    std::vector<double> result;
    for (size_t i = 0; i < array.size(); ++i) result.push_back(array.real(i));
    return result;
  } catch (const Error& e) {  // kernels that are not tensor ops
    if (e.kind() != ErrorKind::Unsupported) throw;
    return t.to_vector<double>();
  }
}

/// Equal up to absolute + relative * |expected|; infinities and NaN must agree.
inline void expect_near(const std::vector<double>& actual, const std::vector<double>& expected,
                        double absolute = 1e-6, double relative = 1e-5,
                        const std::string& what = {}) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i]) || std::isinf(expected[i])) {
      EXPECT_EQ(std::isnan(actual[i]), std::isnan(expected[i]))
          << what << " at " << i << ": " << actual[i];
      if (std::isinf(expected[i])) {
        EXPECT_EQ(actual[i], expected[i]) << what << " at " << i;
      }
    } else {
      const double difference = std::abs(actual[i] - expected[i]);
      EXPECT_TRUE(difference <= absolute + relative * std::abs(expected[i]))
          << what << " at " << i << ": " << actual[i] << ", expected " << expected[i];
    }
  }
}

inline void expect_values(const Tensor& t, const std::vector<double>& expected,
                          double absolute = 1e-6, double relative = 1e-5) {
  expect_near(values(t), expected, absolute, relative);
}

/// Runs `f` and returns the message of the Error it throws, which must be of `kind`.
template <class F>
std::string error_of(F f, ErrorKind kind = ErrorKind::User) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

/// f64: function(first + step * i) for i = 0, 1, …
inline Tensor wave(double (*function)(double), const Shape& shape, double first, double step) {
  std::vector<double> list(static_cast<size_t>(Tensor::zeros(shape).numel()));
  for (size_t i = 0; i < list.size(); ++i)
    list[i] = function(first + step * static_cast<double>(i));
  return Tensor::from(list, shape);
}
inline Tensor cosine(const Shape& shape) {
  return wave(std::cos, shape, 0.3, 0.5);
}
inline Tensor sine(const Shape& shape) {
  return wave(std::sin, shape, 0.2, 0.3);
}
inline Tensor labels() {
  return Tensor::from({2, 0, 3});
}

/// f32: first, first + step, …
inline Tensor counting(const Shape& shape, double first = 0.0, double step = 1.0) {
  return wave([](double x) { return x; }, shape, first, step).cast(DType::F32);
}

}  // namespace plugrad
