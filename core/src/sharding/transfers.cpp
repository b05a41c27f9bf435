#include "sharding/transfers.h"

#include <algorithm>
#include <numeric>

namespace plugrad::sharding {

CollectiveArg Transfers::arg_of(CollectiveKind kind, int64_t peer, std::vector<int64_t> ranks,
                                std::span<const int64_t> shape) const {
  CollectiveArg arg{.kind = kind, .order = made_.order_of(0), .peer = peer};
  arg.ranks = std::move(ranks);
  arg.sent = {element_count(shape)};
  arg.shape.assign(shape.begin(), shape.end());
  arg.whole = whole_;
  return arg;
}

/// The part on `to`, if that is in this process, else kNoId. All processes call it for all moves.
Id Transfers::moved(const Mesh::Place& from, const Mesh::Place& to, const Mesh& mesh, Id part,
                    std::span<const int64_t> shape, DType dtype) {
  if (from.rank == to.rank) return to.rank == mesh.rank ? build_.on(part, to.device) : kNoId;
  if (element_count(shape) == 0)
    return to.rank == mesh.rank ? build_.identity(Op::Add, dtype, shape) : kNoId;
  made_.next_order++;
  std::vector<int64_t> ranks = {std::min(from.rank, to.rank), std::max(from.rank, to.rank)};
  if (from.rank == mesh.rank) {
    const int64_t one[] = {1};
    CollectiveArg arg = arg_of(CollectiveKind::Send, to.rank, std::move(ranks), shape);
    arg.device = from.device;
    arg.shape.assign(one, one + 1);
    add_collective(build_, made_, place_, std::move(arg), part);
  } else if (to.rank == mesh.rank) {
    CollectiveArg arg = arg_of(CollectiveKind::Receive, from.rank, std::move(ranks), shape);
    arg.device = to.device;
    return add_collective(build_, made_, place_, std::move(arg), filler(build_, dtype));
  }
  return kNoId;
}

std::vector<Id> Transfers::between(const Mesh& from, const Mesh& to, const std::vector<Id>& parts,
                                   const Spec& spec, DType dtype) {
  ++place_.depth;
  const bool is_by_position = from.has_shape_of(to);
  std::vector<Id> made(to.size(), kNoId);
  for (uint32_t position = 0; position < to.size(); ++position) {
    const Mesh::Place& place = to.places[position];
    // The first position of a process receives for its others.
    const uint32_t first = is_by_position ? position : to.first_of(place.rank);
    if (first != position) {
      if (to.is_here(position)) made[position] = build_.on(made[first], place.device);
      continue;
    }
    uint32_t source = position;
    if (!is_by_position) source = from.first_of(place.rank);
    if (source == from.size()) source = 0;
    const std::vector<int64_t> shape = local_shape(from, spec, whole_, source);
    made[position] = moved(from.places[source], place, to, parts[source], shape, dtype);
  }
  return made;
}

Id Transfers::to_all(const Mesh& from, const std::vector<Id>& parts, DType dtype, uint32_t device) {
  const bool has_elements = element_count(whole_) != 0;
  if (from.has_all_processes()) return build_.on(parts[from.first_here()], device);
  if (!has_elements) return build_.identity(Op::Add, dtype, whole_);
  ++place_.depth;
  made_.next_order++;
  const Mesh::Place& root = from.places[0];
  std::vector<int64_t> ranks(from.processes);
  std::iota(ranks.begin(), ranks.end(), int64_t{0});
  CollectiveArg arg = arg_of(CollectiveKind::Broadcast, root.rank, std::move(ranks), whole_);
  const bool is_root = root.rank == from.rank;
  arg.device = is_root ? root.device : device;
  const Id source = is_root ? parts[0] : filler(build_, dtype);
  return build_.on(add_collective(build_, made_, place_, std::move(arg), source), device);
}

}  // namespace plugrad::sharding
