// The release of this library, which uses what core promises to no other one.
#pragma once

#include "base/internal.h"

namespace plugrad::onnx {

/// Errors: User if core is of another release.
inline void require_release() {
  require_core_release("libplugrad_onnx.so", PLUGRAD_RELEASE);
}

}  // namespace plugrad::onnx
