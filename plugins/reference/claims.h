// What the device claims: everything that the interpreter runs, less what the option `withdraw`
// names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plugrad/plugin_api/device.h"
#include "plugrad/sdk/ir_view.h"

namespace plugrad::reference {

struct Claims {
  uint32_t op_dtypes[64] = {};  // as in pgr_device_caps; those of WMMA hold for a GPU alone
  uint32_t lanes_bytes = 16;    // size of a vector register
  bool has_local = true;
  bool is_gpu = false;  // groups of work-items in step, and limits, as of a small GPU
  bool has_queue = true, has_graph = true, has_profile = true;
  bool is_synchronous = true;  // the NULL queue has done its work when a call returns
  std::string withdrawn;
  uint32_t dtypes_of(uint32_t op) const { return op == PGR_OP_WMMA && !is_gpu ? 0 : op_dtypes[op]; }
};

// `withdraw` is a list with commas: an op ("exp2"), a dtype ("f16": every arithmetic op on it; it
// can still be stored), a pair ("sqrt:f64"), "lanes", "local", an interface: "queue", "graph" or
// "profile"; or "synchrony": then launches and copies on the NULL queue return before they ran.
// Throws StatusError (INVALID_ARGUMENT) for other words.
Claims make_claims(std::string_view withdraw);

// Those of a GPU: one for each dtype of WMMA.
std::vector<pgr_tensor_core> tensor_cores_of(const Claims& claims);

// `shape` is "cpu" or "gpu": what kernels the device seems made for. Throws StatusError likewise.
void take_shape(Claims& claims, std::string_view shape);

// Throws StatusError (UNSUPPORTED) where the device was opened without an interface.
void require_interface(bool is_claimed, std::string_view name);

// Throws StatusError (UNSUPPORTED) naming the first instruction that uses what is not claimed.
void require_claimed(const Claims& claims, const sdk::IrView& ir);

}  // namespace plugrad::reference
