// Turns a sum over all steps of matrix products into one matrix product over all steps.
#pragma once

#include <functional>
#include <vector>

#include "tensor/loops/recorded_loop.h"

namespace plugrad::tensor {

/// The factors of a term that is a contraction of products, such as the gradient of a weight. The
/// sum over all steps is then a contraction of the factors' arrays. Empty for any other term.
std::vector<Tensor> factors_of(const Tensor& term);

/// The sum of the term over all steps. `array` returns the values of a factor in all steps,
/// (length, …), limited to a variable length.
Tensor summed(const Tensor& term, const std::function<Tensor(const Tensor& factor)>& array);

}  // namespace plugrad::tensor
