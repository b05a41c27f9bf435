// 64-bit integers become pairs of 32-bit words on devices that do not compute with them.
#pragma once

#include "codegen/emit/ir_writer.h"
#include "plugrad/plugin_api/device.h"

namespace plugrad::codegen {

/// Whether the kernel does something with 64-bit integers that the device does not claim.
bool needs_int64_emulation(const IrWriter& kernel, const pgr_device_caps& caps);

/// The same kernel without them: buffers and arrays of 64-bit integers hold twice as many u32,
/// indices are i32. Errors: Unsupported for buffers of more elements than i32 counts, and for a
/// bitcast between f64 and a 64-bit integer.
IrWriter emulate_int64(const IrWriter& kernel, const pgr_device_caps& caps);

}  // namespace plugrad::codegen
