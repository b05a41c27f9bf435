// The gradient of functions with the user's own backward, for the walk in autodiff/.
#pragma once

#include "autodiff/gradient.h"
#include "tensor/record.h"

namespace plugrad::tensor {

/// Calls the user's backward. `recorder` must outlive it.
autodiff::FunctionGradient function_gradient(Recorder& recorder);

}  // namespace plugrad::tensor
