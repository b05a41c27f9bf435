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
  std::vector<std::vector<float>> inputs;    ///< what the peers get
  std::vector<std::string> names = {};       ///< of the last inputs, where they are weights
  Round round;
  std::function<std::vector<Tensor>()> record = {};  ///< what a round computes; of rows of tensors
  std::function<std::vector<float>()> result;  ///< to compare with the peers' once, before timing
};

/// On `device`; empty: the default one. Errors: User from the tensors.
Subject make_subject(const Case& row, const std::string& device = {});

}  // namespace plugrad::bench
