// What the gradient pass of autodiff/ needs of a session, a user's backward functions among it.
#pragma once

#include "autodiff/gradient.h"
#include "tensor/record.h"

namespace plugrad::tensor {

/// For a gradient pass of the recorder's function; it must outlive the result.
autodiff::Context gradient_context(Recorder& recorder);

}  // namespace plugrad::tensor
