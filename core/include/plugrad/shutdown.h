/// The explicit end, for programs that must give devices back before they end. Others need nothing:
/// at exit nothing is closed, and nothing has to be.
#pragma once

#include "plugrad/export.h"

namespace plugrad {

/// Frees everything on every device, in the order that plugins ask for (programs, memory, the
/// device, the plugin), and closes them for good. Tensors may live on, but what they had on a
/// device is gone: using it is an error, as is asking for a device again. No other thread uses
/// plugrad meanwhile. Calling it again does nothing.
PLUGRAD_API void shutdown();

}  // namespace plugrad
