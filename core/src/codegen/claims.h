// What a device says it can do, as codegen asks it.
#pragma once

#include "ir/op.h"
#include "plugrad/dtype.h"
#include "plugrad/plugin_api/device.h"

namespace plugrad::codegen {

inline bool claims(const pgr_device_caps& caps, Op op, DType dtype) {
  const auto number = static_cast<size_t>(op);
  return number < 64 && (caps.op_dtypes[number] >> static_cast<size_t>(dtype) & 1) != 0;
}

/// Whether memory may hold the dtype and kernels may move it.
inline bool claims_storage(const pgr_device_caps& caps, DType dtype) {
  return claims(caps, Op::Load, dtype) && claims(caps, Op::Store, dtype);
}

/// The widest vector of at most 16 bytes that LOAD and STORE take whose lanes divide `count`; 1 for
/// none. Operands of tensor cores are such vectors too.
inline uint32_t widest_moved(const pgr_device_caps& caps, DType dtype, int64_t count) {
  constexpr uint32_t kMostBytes = 16;
  const auto number = static_cast<uint32_t>(dtype);
  uint32_t widest = 1;
  const auto consider = [&](uint32_t lanes) {
    if (lanes > widest && lanes * size_of(dtype) <= kMostBytes && count % lanes == 0)
      widest = lanes;
  };
  for (uint32_t lanes = 2; lanes <= caps.vector_lanes[number]; lanes *= 2) consider(lanes);
  if (caps.has_local == 0 || !claims(caps, Op::Wmma, dtype)) return widest;
  for (uint32_t i = 0; i < caps.tensor_core_count; ++i) {
    const pgr_tensor_core& core = caps.tensor_cores[i];
    if (core.dtype_in != number) continue;
    consider(core.elems_a);
    consider(core.elems_b);
  }
  return widest;
}

inline bool is_64_bit_integer(DType dtype) {
  return dtype == DType::I64 || dtype == DType::U64;
}

}  // namespace plugrad::codegen
