// Remainders of floats (C's fmod) in kernel IR: no device has them.
#pragma once

#include "codegen/emit/ir_writer.h"
#include "ir/graph.h"
#include "plugrad/plugin_api/device.h"

namespace plugrad::codegen {

/// Whether the node is a remainder of floats, f32 or f64 once decomposed.
inline bool is_remainder(const Node& n) {
  return n.op == Op::Mod && is_float(n.dtype);
}

/// Writes a - trunc(a / b) * b, exact for every quotient, and returns its number. `dtype`: f32 or
/// f64.
uint32_t write_remainder(IrWriter& writer, const pgr_device_caps& caps, DType dtype, uint32_t a,
                         uint32_t b);

}  // namespace plugrad::codegen
