// The context of a gradient pass: the session's graph, and the user's backward functions.
#pragma once

#include "autodiff/gradient.h"
#include "tensor/record.h"

namespace plugrad::tensor {

/// For a gradient pass of the recorder's function; it must outlive the result.
autodiff::Context gradient_context(Recorder& recorder);

}  // namespace plugrad::tensor
