// Sums over all steps of matrix products of what each step has: one product of all steps instead.
#pragma once

#include <functional>
#include <vector>

#include "tensor/loops/recorded_loop.h"

namespace plugrad::tensor {

/// What a term of a sum over all steps is computed from, where it is a contraction of products, as
/// the gradient of a weight is: values of a step, from whose arrays the sum is a contraction along
/// the steps too. Empty where the term is anything else.
std::vector<Tensor> factors_of(const Tensor& term);

/// The sum of the term over all steps. `array`: by a factor, its values in all steps, (length, …),
/// of which none behind a variable length counts.
Tensor summed(const Tensor& term, const std::function<Tensor(const Tensor& factor)>& array);

}  // namespace plugrad::tensor
