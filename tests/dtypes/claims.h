// Devices that claim less: capabilities without what a list names, and a check that a kernel keeps
// to them.
#pragma once

#include <string>
#include <string_view>

#include "ir/op.h"
#include "plugrad/dtype.h"
#include "plugrad/plugin_api/device.h"
#include "plugrad/sdk/ir_view.h"

namespace plugrad::dtypes {

/// A device that claims every op on every dtype that docs/kernel-ir.md gives it, in 4 lanes, less
/// the words of `withdrawn`, which commas separate: an op ("exp2"), a dtype ("f16": all arithmetic
/// on it), a pair ("sqrt:f64"), "store:f16" (memory cannot hold it) or "lanes" (one lane only).
/// Throws std::invalid_argument for other words.
pgr_device_caps device_without(std::string_view withdrawn);

/// Whether a full device claims the op on the dtype.
bool is_kernel_op(Op op, DType dtype);

/// The first instruction that uses what is not claimed, as text; empty when there is none.
std::string first_unclaimed(const sdk::IrView& ir, const pgr_device_caps& caps);

}  // namespace plugrad::dtypes
