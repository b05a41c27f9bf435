// The gradient of functions with the user's own backward, for the walk in gradient/.
#pragma once

#include "gradient/gradient.h"
#include "tensor/record.h"

namespace plugrad::tensor {

/// Calls the user's backward. `recorder` must outlive it.
autodiff::FunctionGradient function_gradient(Recorder& recorder);

}  // namespace plugrad::tensor
