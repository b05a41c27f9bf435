// The evaluator on tensors, and its cost.
#pragma once

#include "ops/case.h"

namespace plugrad::ops {

inline constexpr int64_t kMostWork = 40'000'000;

/// Elements of all nodes that the tensors are computed from.
int64_t work_of(const std::vector<Tensor>& tensors);
/// The tensor's values by the evaluator.
std::vector<double> evaluate(const Tensor& tensor);

}  // namespace plugrad::ops
