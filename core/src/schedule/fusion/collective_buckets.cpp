// Groups small collectives between processes that do not depend on each other: one message for
// all. Which ones depends only on what all processes of a group have alike.
#include <algorithm>
#include <map>
#include <tuple>

#include "schedule/scheduler_state.h"
#include "sharding/collectives.h"

namespace plugrad::schedule {
namespace {

using sharding::CollectiveArg;
using sharding::CollectiveKind;

// Over 10 Gb/s a message of this size takes about 8 times as long as the processes need to meet.
constexpr int64_t kLargeBytes = 1 << 20;
// Most of the data should be on its way while kernels still compute the rest.
constexpr int64_t kBuckets = 8;
constexpr int64_t kMostBucketBytes = 25 << 20;

struct Member {
  Id id;
  CollectiveArg arg;
  DType dtype;
  int64_t bytes;  // alike in all processes of the group

  /// Members of one bucket have equal keys.
  auto key() const {
    return std::tuple(arg.depth, arg.kind, arg.reduction, dtype, arg.device, arg.ranks);
  }
  /// The others differ between the processes that take part.
  bool is_small() const { return bytes < kLargeBytes && arg.kind < CollectiveKind::AllToAll; }
};

int64_t sum_of(std::span<const int64_t> counts) {
  int64_t sum = 0;
  for (const int64_t count : counts) sum += count;
  return sum;
}

std::vector<Member> members_of(const SchedulerState& state) {
  std::vector<Member> members;
  for (const Id id : state.live) {
    if (state.graph[id].op != Op::Collective) continue;
    const DType dtype = state.graph[id].dtype;
    CollectiveArg arg = CollectiveArg::of(state.graph.arg_list(id));
    const int64_t count = std::max(sum_of(arg.sent), sum_of(arg.received));
    members.push_back({id, std::move(arg), dtype, count * static_cast<int64_t>(size_of(dtype))});
  }
  std::ranges::sort(members, {}, [](const Member& m) { return m.arg.sequence(); });
  return members;
}

}  // namespace

std::vector<std::vector<Id>> collective_buckets(const SchedulerState& state) {
  const std::vector<Member> members = members_of(state);
  std::map<decltype(members[0].key()), int64_t> small_bytes;
  for (const Member& m : members)
    if (m.is_small()) small_bytes[m.key()] += m.bytes;
  std::vector<std::vector<Id>> buckets;
  const Member* before = nullptr;
  int64_t bytes = 0;  // of the last bucket
  for (const Member& m : members) {
    const auto all = small_bytes.find(m.key());
    const bool joins = before != nullptr && before->is_small() && m.is_small() &&
                       before->key() == m.key() &&
                       bytes < std::clamp(all->second / kBuckets, kLargeBytes, kMostBucketBytes);
    if (!joins) {
      buckets.emplace_back();
      bytes = 0;
    }
    buckets.back().push_back(m.id);
    bytes += m.bytes;
    before = &m;
  }
  return buckets;
}

}  // namespace plugrad::schedule
