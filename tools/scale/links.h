// Times of collectives over the links of a machine.
#pragma once

#include <cstdint>
#include <span>

#include "scale/machine.h"
#include "sharding/collectives.h"

namespace plugrad::tools::scale {

/// Seconds of a collective among `ranks` positions of a mesh of `mesh_size`, which are devices in
/// the order of nodes. `bytes`: of the larger of what one position gives and gets, the whole value.
/// Within a node and between nodes, one after the other; the devices of a node share its network.
double collective_seconds(const Machine& machine, sharding::CollectiveKind kind, double bytes,
                          std::span<const int64_t> ranks, uint64_t mesh_size);

}  // namespace plugrad::tools::scale
