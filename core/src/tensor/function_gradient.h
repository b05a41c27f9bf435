// The callback through which the gradient pass of autodiff/ calls a user's backward.
#pragma once

#include "autodiff/gradient.h"
#include "tensor/record.h"

namespace plugrad::tensor {

/// `recorder` must outlive the result.
autodiff::FunctionGradient function_gradient(Recorder& recorder);

}  // namespace plugrad::tensor
