/// Gradients as tensors; included by tensor.h.
#pragma once

#include "plugrad/tensor.h"

namespace plugrad {

/// d loss / d target for each target, lazily; may be differentiated again. Values that are realised
/// or read forget how they were computed, unless a target was marked with requires_grad_() before.
/// Errors: User unless loss is one float element or `seed`, the gradient of each of its elements,
/// is given; or where it does not depend on a target, naming a read that cut it off.
PLUGRAD_API std::vector<Tensor> gradient(const Tensor& loss, const std::vector<Tensor>& targets,
                                         const Tensor& seed = {});

}  // namespace plugrad
