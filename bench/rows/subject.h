// plugrad's side of a case: its inputs, a timed round, and its results.
#pragma once

#include <functional>
#include <vector>

#include "bench/harness.h"
#include "bench/rows/case.h"
#include "plugrad/tensor.h"

namespace plugrad::bench {

struct Subject {
  std::vector<std::vector<int64_t>> shapes;  ///< of the inputs
  std::vector<std::vector<float>> inputs;    ///< values, also sent to the peers
  std::vector<std::string> names = {};       ///< names of the trailing inputs that are weights
  Round round;
  std::function<std::vector<Tensor>()> record =
      {};                                      ///< computation of a round, for rows of tensors
  std::function<std::vector<float>()> result;  ///< compared with the peers' results before timing
};

/// Reproducible numbers in [-1, 1) of these shapes.
std::vector<std::vector<float>> random_inputs(const std::vector<std::vector<int64_t>>& shapes);

/// On `device`; empty: the default one. Errors: User from the tensors.
Subject make_subject(const Case& row, const std::string& device = {});

}  // namespace plugrad::bench
