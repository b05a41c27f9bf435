// Times of collectives over the links of a machine.
#pragma once

#include <cstdint>
#include <span>

#include "scale/machine.h"
#include "sharding/collectives.h"

namespace plugrad::tools::scale {

/// Seconds of a collective among `ranks` positions of a mesh of `mesh_size`, which are devices in
/// the order of nodes. `bytes`: of the larger of what one position gives and gets, the whole value.
/// In one round each of p members sends (p - 1) / p of the bytes; an all-reduce has two, which scatter
/// the sums and gather them: Thakur et al., Optimization of Collective Communication Operations in
/// MPICH, 2005. A ring over several nodes, as NCCL's, enters and leaves each node once for each of
/// its members. The devices of a node share its network.
double collective_seconds(const Machine& machine, CollectiveKind kind, double bytes,
                          std::span<const int64_t> ranks, uint64_t mesh_size);

}  // namespace plugrad::tools::scale
