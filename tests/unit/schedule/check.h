// Checks that a plan computes the oracle's values.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "oracle/evaluator.h"
#include "run_plan.h"
#include "tensors.h"

namespace plugrad::test {

inline schedule::Plan plan_of(Tensors& t, std::vector<Id> roots,
                              const schedule::Options& options = {}) {
  return schedule::make_plan(t.g, roots, t.inputs, 1, options);
}

inline size_t kernel_count(const schedule::Plan& plan) {
  size_t count = 0;
  for (const auto& step : plan.steps) count += step.kind == schedule::Step::Kind::Kernel;
  return count;
}

/// Small integers: every sum is exact in any order.
inline oracle::Array random_array(Tensors& t, Id buffer, std::mt19937& random) {
  oracle::Array a;
  a.dtype = t.g[buffer].dtype;
  a.shape = t.shape(buffer);
  a.bits.resize(static_cast<size_t>(element_count(a.shape)));
  const int low = is_unsigned(a.dtype) ? 0 : -3;
  for (auto& b : a.bits)
    b = bits_of(static_cast<int64_t>(low + static_cast<int>(random() % 7)), a.dtype);
  return a;
}

inline bool close(uint64_t have, uint64_t want, DType dtype) {
  if (have == want || !is_float(dtype)) return have == want;
  const double a = std::bit_cast<double>(have), b = std::bit_cast<double>(want);
  return std::abs(a - b) <= 1e-4 * std::max(1.0, std::abs(b)) || (std::isnan(a) && std::isnan(b));
}

/// Plans `roots`, runs the plan, compares with the oracle; returns the plan.
inline schedule::Plan check(Tensors& t, std::vector<Id> roots,
                            const schedule::Options& options = {}) {
  std::mt19937 random(7);
  std::vector<oracle::Array> inputs;
  for (Id b : t.inputs) inputs.push_back(random_array(t, b, random));
  schedule::Plan plan = plan_of(t, roots, options);
  const auto have = run_plan(plan, inputs);
  const auto leaf = [&](Id b) { return inputs[static_cast<size_t>(buffer_number(t.g, b))]; };
  const auto want = oracle::evaluate(t.g, roots, leaf);
  for (size_t r = 0; r < roots.size(); ++r) {
    EXPECT_EQ(have[r].size(), want[r].bits.size());
    for (size_t i = 0; i < std::min(have[r].size(), want[r].bits.size()); ++i)
      EXPECT_TRUE(close(have[r][i], want[r].bits[i], want[r].dtype))
          << "root " << r << " element " << i << ": " << std::bit_cast<double>(have[r][i])
          << " but should be " << std::bit_cast<double>(want[r].bits[i]);
    if (::testing::Test::HasFailure()) break;
  }
  return plan;
}

}  // namespace plugrad::test
