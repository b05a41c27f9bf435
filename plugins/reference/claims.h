// The device's claims: everything that the interpreter supports, minus the option `withdraw`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plugrad/plugin_api/device.h"
#include "plugrad/sdk/ir_view.h"

namespace plugrad::reference {

struct Claims {
  uint32_t op_dtypes[64] = {};  // as in pgr_device_caps; WMMA only for a GPU
  uint32_t lanes_bytes = 16;    // size of a vector register
  bool has_local = true;
  bool is_gpu = false;  // lockstep groups of work-items, and the limits of a small GPU
  bool has_queue = true, has_graph = true, has_profile = true;
  bool is_synchronous = true;  // work on the NULL queue is done when the call returns
  std::string withdrawn;
  uint32_t dtypes_of(uint32_t op) const { return op == PGR_OP_WMMA && !is_gpu ? 0 : op_dtypes[op]; }
};

// `withdraw` is a comma-separated list of: an op ("exp2"); a dtype ("f16": all arithmetic on it;
// storing remains); a pair ("sqrt:f64"); "lanes"; "local"; an interface: "queue", "graph" or
// "profile"; or "synchrony": launches and copies on the NULL queue then return before they have
// run. Throws StatusError (INVALID_ARGUMENT) for other words.
Claims make_claims(std::string_view withdraw);

// The GPU's tensor cores: one for each dtype of WMMA.
std::vector<pgr_tensor_core> tensor_cores_of(const Claims& claims);

// `shape` is "cpu" or "gpu": the kind of device to imitate. Throws StatusError for other words.
void take_shape(Claims& claims, std::string_view shape);

// Throws StatusError (UNSUPPORTED) if the device was opened without the interface.
void require_interface(bool is_claimed, std::string_view name);

// Throws StatusError (UNSUPPORTED) with the first instruction that uses an unclaimed feature.
void require_claimed(const Claims& claims, const sdk::IrView& ir);

}  // namespace plugrad::reference
