#include "scale/links.h"

#include <algorithm>
#include <map>

namespace plugrad::tools::scale {
namespace {

/// The members of a collective, and how many of them are on one node.
struct Members {
  double all, on_a_node, nodes;
};

Members members_of(const Machine& machine, std::span<const int64_t> ranks) {
  std::map<int64_t, int64_t> of_node;
  for (const int64_t rank : ranks) ++of_node[rank / machine.devices_per_node];
  int64_t most = 0;
  for (const auto& [node, members] : of_node) most = std::max(most, members);
  return {static_cast<double>(ranks.size()), static_cast<double>(most),
          static_cast<double>(of_node.size())};
}

/// One round in which each member gives the others all but its own part: around a ring, p - 1
/// messages one after another, each as slow as the slowest link on its way; or all messages at once.
double round_seconds(const Link& link, const Link& network, const Members& m, double bytes,
                     Algorithm algorithm) {
  const double part = bytes / m.all;
  if (algorithm == Algorithm::Ring) {
    double rate = m.nodes > 1 ? network.bytes_per_second * m.on_a_node : link.bytes_per_second;
    if (m.on_a_node > 1) rate = std::min(rate, link.bytes_per_second);
    return (m.all - m.nodes) * link.latency_seconds + (m.nodes - 1) * network.latency_seconds +
           (m.all - 1) * part / rate;
  }
  const double far = m.all - m.on_a_node;
  const double within = (m.on_a_node - 1) * part / link.bytes_per_second;
  return m.nodes > 1
             ? network.latency_seconds + std::max(within, far * part / network.bytes_per_second)
             : link.latency_seconds + within;
}

}  // namespace

double collective_seconds(const Machine& machine, CollectiveKind kind, double bytes,
                          std::span<const int64_t> ranks, uint64_t mesh_size) {
  if (ranks.size() < 2) return 0;
  // All groups of the mesh are at work: each active device of a node has its share of the network.
  const uint64_t active = std::min<uint64_t>(machine.devices_per_node, mesh_size);
  Link network = machine.network;
  network.bytes_per_second /= static_cast<double>(active);
  const Members members = members_of(machine, ranks);
  Algorithm algorithm = members.nodes > 1 ? network.algorithm : machine.link.algorithm;
  if (kind == CollectiveKind::AllToAll) algorithm = Algorithm::Direct;
  const double rounds = kind == CollectiveKind::AllReduce ? 2 : 1;
  return rounds * round_seconds(machine.link, network, members, bytes, algorithm);
}

}  // namespace plugrad::tools::scale
