/// Gradients as lazy tensors; included by tensor.h.
#pragma once

#include "plugrad/tensor.h"

namespace plugrad {

/// d loss / d target for each target; lazy and differentiable again. Realising or reading a tensor
/// drops its autograd history, unless a target was marked with requires_grad_() before. Errors:
/// User unless loss is one float element or `seed`, the gradient of each of its elements, is given;
/// when loss does not depend on a target (the message names the read that dropped the history).
PLUGRAD_API std::vector<Tensor> gradient(const Tensor& loss, const std::vector<Tensor>& targets,
                                         const Tensor& seed = {});

}  // namespace plugrad
