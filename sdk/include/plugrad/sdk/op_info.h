// SPDX-License-Identifier: Apache-2.0
// Tables of the ops and dtypes of kernel IR, indexed by number.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "plugrad/plugin_api/kernel_ir.h"

namespace plugrad::sdk {

struct OpInfo {
  std::string_view name;    // "ADD", as in PGR_OP_ADD
  std::string_view pascal;  // "Add"
  uint16_t number;
  uint8_t min_sources, max_sources;  // 255: any number
  uint8_t op_class;                  // PGR_OP_CLASS_*
  std::string_view meaning;
};

struct DtypeInfo {
  std::string_view name;  // "f32"
  uint32_t size_bytes;
  bool is_float, is_int, is_signed;  // f8 types count as float; bool is neither
};

// All ops, in the order of kernel_ops.h.
std::span<const OpInfo> all_ops();

// nullptr for a number that kernel_ops.h does not list.
const OpInfo* op_info(uint32_t number);

// nullptr from PGR_DTYPE_COUNT on.
const DtypeInfo* dtype_info(uint32_t number);

// Size in bytes of one element; 0 for void and for unknown dtypes.
uint32_t dtype_size(uint32_t number);

// "f32", or "unknown dtype".
std::string_view dtype_name(uint32_t number);

}  // namespace plugrad::sdk
