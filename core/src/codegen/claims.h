// What a device says it can do, as codegen asks it.
#pragma once

#include "plugrad/dtype.h"
#include "plugrad/plugin_api/device.h"
#include "uop/op.h"

namespace plugrad::codegen {

inline bool claims(const pgr_device_caps& caps, Op op, DType dtype) {
  const auto number = static_cast<size_t>(op);
  return number < 64 && (caps.op_dtypes[number] >> static_cast<size_t>(dtype) & 1) != 0;
}

/// Whether memory may hold the dtype and kernels may move it.
inline bool claims_storage(const pgr_device_caps& caps, DType dtype) {
  return claims(caps, Op::Load, dtype) && claims(caps, Op::Store, dtype);
}

inline bool is_wide_integer(DType dtype) {
  return dtype == DType::I64 || dtype == DType::U64;
}

}  // namespace plugrad::codegen
