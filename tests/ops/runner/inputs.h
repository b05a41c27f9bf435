// The values of a row's inputs, and the variants in which a row is checked.
#pragma once

#include "ops/case.h"

namespace plugrad::ops {

/// Values of the inputs, row-major; ints and bool as whole numbers. They follow from the names.
std::vector<std::vector<double>> input_values(const Entry& entry);

/// The inputs on the default device, in the row's dtypes or, when `wide`, floats as f64.
In inputs_of(const Entry& entry, const std::vector<std::vector<double>>& values, bool wide);

/// Indices of the inputs that gradients are taken of: none if no output is a float.
std::vector<size_t> differentiated(const Case& row, const std::vector<Tensor>& outputs);

/// sum(cos(0.3 + 0.5 i) * output) over the float outputs.
Tensor loss_of(const std::vector<Tensor>& outputs);
/// Gradients of loss_of with respect to each of `places`.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& outputs, const In& inputs,
                                 const std::vector<size_t>& places);

}  // namespace plugrad::ops
