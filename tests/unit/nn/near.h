// Compares values of a tensor with expected ones.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "plugrad/tensor.h"

/// Each within `tolerance`, relative to the larger of 1 and its size.
inline void expect_near(const plugrad::Tensor& tensor, const std::vector<float>& expected,
                        double tolerance = 2e-6) {
  std::vector<float> values = tensor.to_vector<float>();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], tolerance * std::max(1.0f, std::abs(expected[i])))
        << "at " << i;
}
