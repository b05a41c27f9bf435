// Devices with reduced claims, and a check that kernels use only claimed features.
#pragma once

#include <string>
#include <string_view>

#include "ir/op.h"
#include "plugrad/dtype.h"
#include "plugrad/plugin_api/device.h"
#include "plugrad/sdk/ir_view.h"

namespace plugrad::dtypes {

/// A device that claims every op on every dtype of docs/kernel-ir.md, with 4 lanes, minus the
/// comma-separated words of `withdrawn`: an op ("exp2"), a dtype ("f16": all arithmetic on it), a
/// pair ("sqrt:f64"), "store:f16" (no storage) or "lanes" (one lane only). Throws
/// std::invalid_argument for other words.
pgr_device_caps device_without(std::string_view withdrawn);

/// True if a full device claims the op on the dtype.
bool is_kernel_op(Op op, DType dtype);

/// The first instruction that uses an unclaimed feature, as text; empty: none.
std::string first_unclaimed(const sdk::IrView& ir, const pgr_device_caps& caps);

}  // namespace plugrad::dtypes
