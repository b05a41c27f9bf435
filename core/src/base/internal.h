// What other libraries of the same release, such as libplugrad_onnx.so, use of core.
#pragma once

#include <string_view>

#include "plugrad/export.h"

/// Exported without a promise to programs: never in a public header.
#define PLUGRAD_INTERNAL PLUGRAD_API

namespace plugrad {

/// Called where a library of that release, such as "1.0.0", is entered. Errors: User if core is of
/// another one.
PLUGRAD_INTERNAL void require_core_release(std::string_view library, std::string_view release);

}  // namespace plugrad
