#include "scale/links.h"

#include <algorithm>
#include <map>

namespace plugrad::tools::scale {
namespace {

using sharding::CollectiveKind;

/// Each of p members moves (p - 1) / p of the bytes: twice in an all-reduce, which scatters the
/// sums and gathers them. Thakur et al., Optimization of Collective Communication Operations in
/// MPICH, 2005.
double seconds_of(const Link& link, CollectiveKind kind, double bytes, double members) {
  if (members < 2) return 0;
  const double rounds = kind == CollectiveKind::AllReduce ? 2 : 1;
  const double messages = link.algorithm == Algorithm::Ring ? members - 1 : 1;
  return rounds * (messages * link.latency_seconds +
                   (members - 1) / members * bytes / link.bytes_per_second);
}

}  // namespace

double collective_seconds(const Machine& machine, CollectiveKind kind, double bytes,
                          std::span<const int64_t> ranks, uint64_t mesh_size) {
  std::map<int64_t, int64_t> members_of_node;
  for (const int64_t rank : ranks) ++members_of_node[rank / machine.devices_per_node];
  int64_t most = 0;
  for (const auto& [node, members] : members_of_node) most = std::max(most, members);
  const double within = static_cast<double>(most);
  // All groups of the mesh are at work: each active device of a node has its share of the network.
  const uint64_t active = std::min<uint64_t>(machine.devices_per_node, mesh_size);
  Link network = machine.network;
  network.bytes_per_second /= static_cast<double>(active);
  return seconds_of(machine.link, kind, bytes, within) +
         seconds_of(network, kind, bytes / within, static_cast<double>(members_of_node.size()));
}

}  // namespace plugrad::tools::scale
