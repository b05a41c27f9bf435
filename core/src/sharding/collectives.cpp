#include "sharding/collectives.h"

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "base/settings.h"

namespace plugrad::sharding {
namespace {

int64_t count_of(std::span<const int64_t> shape) {
  return element_count(shape);
}

/// Whether sizes_of(member) is equal for all members, and not empty.
template <class Group, class SizesOf>
bool are_alike(const Group& group, const SizesOf& sizes_of) {
  const std::vector<int64_t> first = sizes_of(group.members[0]);
  return count_of(first) != 0 && std::ranges::all_of(group.members, [&](uint32_t member) {
           return sizes_of(member) == first;
         });
}

/// 1 if a process would send or receive nothing, else 0.
int64_t extra_of(std::span<const int64_t> counts) {
  return std::ranges::count(counts, 0) != 0 ? 1 : 0;
}

// From this size on, each device reduces a slice for all others: 2 copies of the value a device
// instead of one for each other device. Chosen, not measured.
constexpr int64_t kLeastSliced = 1 << 14;  // elements

}  // namespace

std::vector<int64_t> CollectiveArg::list() const {
  std::vector<int64_t> list;
  const auto put = [&](std::span<const int64_t> values) {
    list.push_back(static_cast<int64_t>(values.size()));
    list.insert(list.end(), values.begin(), values.end());
  };
  put(shape);  // first, where Shapes reads it, then the device, which Devices reads
  list.insert(list.end(), {device, place, order, depth, static_cast<int64_t>(kind),
                           static_cast<int64_t>(reduction), peer});
  for (const auto* values : {&ranks, &sent, &received, &whole}) put(*values);
  return list;
}

CollectiveArg CollectiveArg::of(std::span<const int64_t> list) {
  CollectiveArg arg;
  const auto take = [&](std::vector<int64_t>& values) {
    const auto found = list.subspan(1, static_cast<size_t>(list[0]));
    values.assign(found.begin(), found.end());
    list = list.subspan(1 + found.size());
  };
  take(arg.shape);
  arg.device = list[0];
  arg.place = list[1];
  arg.order = list[2];
  arg.depth = list[3];
  arg.kind = static_cast<CollectiveKind>(list[4]);
  arg.reduction = static_cast<Op>(list[5]);
  arg.peer = list[6];
  list = list.subspan(7);
  for (auto* values : {&arg.ranks, &arg.sent, &arg.received, &arg.whole}) take(*values);
  return arg;
}

std::vector<CollectiveArg> args_of(std::span<const uint64_t> scalars) {
  const std::vector<int64_t> words(scalars.begin(), scalars.end());
  std::vector<CollectiveArg> args;
  for (std::span<const int64_t> rest = words; !rest.empty();) {
    args.push_back(CollectiveArg::of(rest));
    rest = rest.subspan(args.back().list().size());
  }
  return args;
}

/// Stores the parts: kernels that compute them, or read them, are then the same however many parts
/// this process has, and so is the order of their sums.
void Collectives::store(Parts& parts) {
  Graph& graph = build_.graph();
  for (Id& part : parts) {
    if (part == kNoId || build_.device(part) == 0) continue;
    const Op op = graph[part].op;
    if (op != Op::Buffer && op != Op::Collective && op != Op::Contiguous)
      part = graph.add(Op::Contiguous, graph[part].dtype, {part});
  }
}

std::vector<Id> Collectives::reshard(std::vector<Id> parts, Spec from, const Spec& to,
                                     std::span<const int64_t> shape) {
  whole_.assign(shape.begin(), shape.end());
  const bool stores = settings().deterministic;
  for (const Movement& move : movements(from, to)) {
    Spec next = from;
    if (stores) store(parts);
    ++place_.depth;
    switch (move.kind) {
      case CollectiveKind::AllReduce:
        parts = all_reduce(parts, move.along, from.reduction);
        break;
      case CollectiveKind::ReduceScatter:
        next.dims[move.to] |= move.along;
        parts = reduce_scatter(parts, move.along, move.to, from.reduction, next, shape);
        break;
      case CollectiveKind::AllGather:
        next.dims[move.from] &= ~move.along;
        parts = all_gather(parts, move.along, move.from, from, shape);
        break;
      case CollectiveKind::AllToAll:
        next.dims[move.from] &= ~move.along;
        next.dims[move.to] |= move.along;
        parts = all_to_all(parts, move.along, move.from, move.to, from, next, shape);
        break;
      case CollectiveKind::Broadcast:
      case CollectiveKind::Send:
      case CollectiveKind::Receive:
        ensure(false, "a {} leads to no other spec", name_of(move.kind));
    }
    if (move.kind == CollectiveKind::AllReduce || move.kind == CollectiveKind::ReduceScatter)
      next.partial &= ~move.along;
    if (stores) store(parts);
    from = std::move(next);
  }
  parts = sliced(parts, from, to, shape);
  const AxisSet terms = to.partial & ~from.partial;
  return terms == 0 ? parts : as_terms(parts, terms, to.reduction);
}

/// Calls run(group, out) for each group that has members here.
template <class Run>
Collectives::Parts Collectives::in_groups(const Parts& parts, AxisSet along, const Run& run) {
  Parts out(parts.size(), kNoId);
  std::vector<bool> is_done(parts.size());
  for (uint32_t position = 0; position < mesh_.size(); ++position) {
    if (!mesh_.is_here(position) || is_done[position]) continue;
    Group group{mesh_.group(position, along), {}, {}};
    std::unordered_set<uint32_t> ranks;
    for (uint32_t i = 0; i < group.members.size(); ++i) {
      const uint32_t rank = mesh_.places[group.members[i]].rank;
      if (rank == mesh_.rank) group.here.push_back(i);
      if (ranks.insert(rank).second) group.ranks.push_back(rank);
    }
    for (const uint32_t i : group.here) is_done[group.members[i]] = true;
    run(group, out);
  }
  ++made_.next_order;
  return out;
}

/// The shape of equal parts one after another along dimension 0.
std::vector<int64_t> Collectives::stacked(std::vector<int64_t> part, const Group& group) {
  part[0] *= static_cast<int64_t>(group.members.size());
  return part;
}

/// Whether the member is the last one of its process in the group.
bool Collectives::ends_block(const Group& group, uint32_t member) const {
  const auto at = std::ranges::find(group.members, member);
  return at + 1 == group.members.end() || mesh_.places[at[1]].rank != mesh_.places[member].rank;
}

Id filler(LocalBuilder& build, DType dtype) {
  const int64_t one[] = {1};
  return build.identity(Op::Mul, dtype, one);
}

Id add_collective(LocalBuilder& build, CollectiveList& made, const CollectivePlace& place,
                  CollectiveArg arg, Id source) {
  Graph& graph = build.graph();
  arg.place = place.place;
  arg.depth = made.are_alone ? -1 - static_cast<int64_t>(made.nodes.size()) : place.depth;
  made.nodes.push_back(
      graph.add(Op::Collective, graph[source].dtype, {source}, graph.list(arg.list())));
  return made.nodes.back();
}

/// One element at the end of what each process sends, if some would send nothing.
Id Collectives::filler(Id like) {
  return sharding::filler(build_, build_.graph()[like].dtype);
}

Id Collectives::collective(CollectiveArg arg, Id source, uint32_t device) {
  arg.order = made_.order_of(arg.order);
  arg.device = device;
  arg.whole = whole_;
  return add_collective(build_, made_, place_, std::move(arg), source);
}

Id Collectives::reduced_on(const Group& group, const Parts& parts, Op reduction, uint32_t device) {
  std::vector<Id> terms;
  for (const uint32_t i : group.here) terms.push_back(build_.on(parts[group.members[i]], device));
  return build_.tree(reduction, terms);
}

void Collectives::reduce_locally(const Group& group, const Parts& parts, Op reduction, Parts& out) {
  const auto device = [&](uint32_t i) { return mesh_.places[group.members[i]].device; };
  std::vector<uint32_t> devices;
  for (const uint32_t i : group.here) devices.push_back(device(i));
  std::ranges::sort(devices);
  devices.erase(std::ranges::unique(devices).begin(), devices.end());
  const std::vector<int64_t> shape = build_.shape(parts[group.members[group.here[0]]]);
  const int64_t count = count_of(shape);
  const auto pieces = static_cast<int64_t>(devices.size());
  if (pieces <= 2 || count < kLeastSliced) {
    for (const uint32_t i : group.here)
      out[group.members[i]] = reduced_on(group, parts, reduction, device(i));
    return;
  }
  std::vector<Id> slices;
  for (int64_t k = 0; k < pieces; ++k) {
    Parts sources(parts.size(), kNoId);
    for (const uint32_t i : group.here)
      sources[group.members[i]] = build_.slice(build_.flat(parts[group.members[i]]), 0,
                                               {count * k / pieces, count * (k + 1) / pieces});
    slices.push_back(reduced_on(group, sources, reduction, devices[static_cast<size_t>(k)]));
  }
  for (const uint32_t i : group.here) {
    std::vector<Id> there;
    for (const Id slice : slices) there.push_back(build_.on(slice, device(i)));
    out[group.members[i]] = build_.reshape(build_.join(there, 0), shape);
  }
}

Collectives::Parts Collectives::all_reduce(const Parts& parts, AxisSet along, Op reduction) {
  return in_groups(parts, along, [&](const Group& group, Parts& out) {
    if (group.is_local()) return reduce_locally(group, parts, reduction, out);
    const uint32_t leader = group.members[group.here[0]];
    const Id own = reduced_on(group, parts, reduction, mesh_.places[leader].device);
    const bool is_empty = count_of(build_.shape(own)) == 0;  // in all of the group
    for (const uint32_t i : group.here) out[group.members[i]] = parts[group.members[i]];
    if (is_empty && count_of(whole_) == 0) return;
    // An empty part takes part, too: all processes have the same list of collectives.
    const Id source = is_empty ? filler(own) : own;
    const Id sum = collective({.kind = CollectiveKind::AllReduce,
                               .reduction = reduction,
                               .order = group.members[0],
                               .ranks = group.ranks,
                               .sent = {count_of(build_.shape(source))},
                               .received = {},
                               .shape = build_.shape(source)},
                              source, mesh_.places[leader].device);
    for (const uint32_t i : group.here)
      if (!is_empty) out[group.members[i]] = build_.on(sum, mesh_.places[group.members[i]].device);
  });
}

Collectives::Parts Collectives::all_gather(const Parts& parts, AxisSet along, size_t d,
                                           const Spec& from, std::span<const int64_t> shape) {
  return in_groups(parts, along, [&](const Group& group, Parts& out) {
    const auto local = [&](uint32_t position) { return local_shape(mesh_, from, shape, position); };
    const uint32_t leader = group.members[group.here[0]];
    const uint32_t device = mesh_.places[leader].device;
    if (group.is_local()) {
      for (const uint32_t i : group.here) {
        std::vector<Id> there;
        for (const uint32_t member : group.members)
          there.push_back(build_.on(parts[member], mesh_.places[group.members[i]].device));
        out[group.members[i]] = build_.join(there, d);
      }
      return;
    }
    std::vector<Id> mine;
    for (const uint32_t i : group.here)
      mine.push_back(build_.flat(build_.on(parts[group.members[i]], device)));
    CollectiveArg arg{.kind = CollectiveKind::AllGather,
                      .order = group.members[0],
                      .ranks = group.ranks,
                      .sent = {},
                      .received = std::vector<int64_t>(group.ranks.size()),
                      .shape = {0}};
    for (const uint32_t member : group.members) {
      const int64_t count = count_of(local(member));
      const auto rank = std::ranges::find(group.ranks, int64_t{mesh_.places[member].rank});
      arg.received[static_cast<size_t>(rank - group.ranks.begin())] += count;
      arg.shape[0] += count;
    }
    const int64_t extra = extra_of(arg.received);
    for (int64_t& count : arg.received) count += extra;
    arg.shape[0] += extra * static_cast<int64_t>(group.ranks.size());
    if (extra != 0) mine.push_back(filler(mine[0]));
    const bool is_equal = are_alike(group, local);
    if (is_equal && d == 0) arg.shape = stacked(local(leader), group);
    const Id gathered = collective(arg, build_.join(mine, 0), device);
    Id joined = kNoId;
    if (is_equal) {
      joined = build_.join_equal(gathered, group.members.size(), local(leader), d);
    } else {
      std::vector<Id> all;  // by member
      int64_t begin = 0;
      for (const uint32_t member : group.members) {
        const std::vector<int64_t> sizes = local(member);
        const int64_t count = count_of(sizes);
        all.push_back(build_.reshape(build_.slice(gathered, 0, {begin, begin + count}), sizes));
        begin += count + (ends_block(group, member) ? extra : 0);
      }
      joined = build_.join(all, d);
    }
    for (const uint32_t i : group.here)
      out[group.members[i]] = build_.on(joined, mesh_.places[group.members[i]].device);
  });
}

/// The indices that a position has of the part cut along `outer`, if `all` cuts it further.
Part Collectives::within(uint32_t position, AxisSet outer, AxisSet all, int64_t size) const {
  const Part whole = part_of(mesh_, outer, size, position),
             own = part_of(mesh_, all, size, position);
  return {own.begin - whole.begin, own.end - whole.begin};
}

Collectives::Parts Collectives::reduce_scatter(const Parts& parts, AxisSet along, size_t d,
                                               Op reduction, const Spec& to,
                                               std::span<const int64_t> shape) {
  const AxisSet outer = to.dims[d] & ~along;
  const auto part_for = [&](uint32_t member) {
    return within(member, outer, to.dims[d], shape[d]);
  };
  return in_groups(parts, along, [&](const Group& group, Parts& out) {
    const auto reduced_for = [&](uint32_t member, uint32_t device) {
      Parts sources(parts.size(), kNoId);
      for (const uint32_t i : group.here)
        sources[group.members[i]] = build_.slice(parts[group.members[i]], d, part_for(member));
      return reduced_on(group, sources, reduction, device);
    };
    if (group.is_local()) {
      for (const uint32_t member : group.members)
        out[member] = reduced_for(member, mesh_.places[member].device);
      return;
    }
    const uint32_t first = group.members[group.here[0]];
    const uint32_t device = mesh_.places[first].device;
    CollectiveArg arg{.kind = CollectiveKind::ReduceScatter,
                      .reduction = reduction,
                      .order = group.members[0],
                      .ranks = group.ranks,
                      .sent = std::vector<int64_t>(group.ranks.size()),
                      .received = {},
                      .shape = {0}};
    const auto after = [&](uint32_t member) { return local_shape(mesh_, to, shape, member); };
    if (group.here.size() == 1 && are_alike(group, after)) {
      arg.shape = after(first);
      std::ranges::fill(arg.sent, count_of(arg.shape));
      const Id source = build_.cut_equal(parts[first], group.members.size(), d);
      out[first] = collective(std::move(arg), source, device);
      return;
    }
    std::vector<Id> pieces;
    for (const uint32_t member : group.members) {
      pieces.push_back(build_.flat(reduced_for(member, device)));
      const int64_t count = count_of(build_.shape(pieces.back()));
      const auto rank = std::ranges::find(group.ranks, int64_t{mesh_.places[member].rank});
      arg.sent[static_cast<size_t>(rank - group.ranks.begin())] += count;
      if (mesh_.is_here(member)) arg.shape[0] += count;
    }
    if (const int64_t extra = extra_of(arg.sent); extra != 0) {
      std::vector<Id> filled;
      for (size_t i = 0; i < pieces.size(); ++i) {
        filled.push_back(pieces[i]);
        if (ends_block(group, group.members[i])) filled.push_back(filler(pieces[i]));
      }
      pieces = std::move(filled);
      for (int64_t& count : arg.sent) count += extra;
      arg.shape[0] += extra;
    }
    const Id scattered = collective(arg, build_.join(pieces, 0), device);
    int64_t begin = 0;
    for (const uint32_t i : group.here) {
      const uint32_t member = group.members[i];
      const std::vector<int64_t> sizes = local_shape(mesh_, to, shape, member);
      const int64_t count = count_of(sizes);
      const Id own = build_.reshape(build_.slice(scattered, 0, {begin, begin + count}), sizes);
      out[member] = build_.on(own, mesh_.places[member].device);
      begin += count;
    }
  });
}

Collectives::Parts Collectives::all_to_all(const Parts& parts, AxisSet along, size_t d, size_t e,
                                           const Spec& from, const Spec& to,
                                           std::span<const int64_t> shape) {
  const AxisSet outer = to.dims[e] & ~along;
  const auto part_for = [&](uint32_t member) {
    return within(member, outer, to.dims[e], shape[e]);
  };
  // Between processes with one member each; otherwise every device gathers all and takes its part.
  bool is_direct = true;
  Parts out = in_groups(parts, along, [&](const Group& group, Parts& result) {
    if (group.is_local()) {
      for (const uint32_t member : group.members) {
        std::vector<Id> there;
        for (const uint32_t other : group.members)
          there.push_back(build_.on(build_.slice(parts[other], e, part_for(member)),
                                    mesh_.places[member].device));
        result[member] = build_.join(there, d);
      }
      return;
    }
    if (group.ranks.size() != group.members.size()) {
      is_direct = false;
      return;
    }
    const uint32_t own = group.members[group.here[0]];
    CollectiveArg arg{.kind = CollectiveKind::AllToAll,
                      .order = group.members[0],
                      .ranks = group.ranks,
                      .sent = {},
                      .received = {},
                      .shape = {0}};
    const auto before = [&](uint32_t member) { return local_shape(mesh_, from, shape, member); };
    const auto after = [&](uint32_t member) { return local_shape(mesh_, to, shape, member); };
    if (are_alike(group, before) && are_alike(group, after)) {
      std::vector<int64_t> piece = before(own);
      piece[e] = part_for(own).size();
      arg.shape = d == 0 ? stacked(piece, group) : std::vector{count_of(before(own))};
      arg.sent.assign(group.members.size(), count_of(piece));
      arg.received = arg.sent;
      const Id pieces = build_.cut_equal(parts[own], group.members.size(), e);
      const Id exchanged = collective(std::move(arg), pieces, mesh_.places[own].device);
      result[own] = build_.join_equal(exchanged, group.members.size(), piece, d);
      return;
    }
    std::vector<Id> pieces;
    std::vector<std::vector<int64_t>> shapes;
    for (const uint32_t member : group.members) {  // each with a filler: a pair may have nothing
      pieces.push_back(build_.flat(build_.slice(parts[own], e, part_for(member))));
      arg.sent.push_back(count_of(build_.shape(pieces.back())) + 1);
      pieces.push_back(filler(pieces.back()));
      shapes.push_back(before(member));
      shapes.back()[e] = part_for(own).size();
      arg.received.push_back(count_of(shapes.back()) + 1);
      arg.shape[0] += arg.received.back();
    }
    const Id exchanged = collective(arg, build_.join(pieces, 0), mesh_.places[own].device);
    std::vector<Id> arrived;
    int64_t begin = 0;
    for (size_t i = 0; i < shapes.size(); ++i) {
      arrived.push_back(build_.reshape(
          build_.slice(exchanged, 0, {begin, begin + arg.received[i] - 1}), shapes[i]));
      begin += arg.received[i];
    }
    result[own] = build_.join(arrived, d);
  });
  if (is_direct) return out;
  Spec gathered = from;
  gathered.dims[d] &= ~along;
  return sliced(all_gather(parts, along, d, from, shape), gathered, to, shape);
}

/// Cuts dimensions further; every device has what it needs.
Collectives::Parts Collectives::sliced(const Parts& parts, const Spec& from, const Spec& to,
                                       std::span<const int64_t> shape) {
  Parts out = parts;
  for (uint32_t position = 0; position < parts.size(); ++position)
    for (size_t d = 0; d < from.dims.size() && parts[position] != kNoId; ++d)
      if (from.dims[d] != to.dims[d])
        out[position] =
            build_.slice(out[position], d, within(position, from.dims[d], to.dims[d], shape[d]));
  return out;
}

/// The first device along the axes keeps the value, the others get the identity.
Collectives::Parts Collectives::as_terms(const Parts& parts, AxisSet along, Op reduction) {
  Parts out = parts;
  for (uint32_t position = 0; position < parts.size(); ++position)
    if (parts[position] != kNoId && mesh_.index(position, along) != 0)
      out[position] = build_.identity(reduction, build_.graph()[parts[position]].dtype,
                                      build_.shape(parts[position]));
  return out;
}

}  // namespace plugrad::sharding
