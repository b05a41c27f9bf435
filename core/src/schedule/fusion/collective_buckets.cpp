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

// Over 10 Gb/s a message of this size takes about 8 times as long as the processes need to meet.
constexpr int64_t kLargeBytes = 1 << 20;
// Most of the data should be on its way while kernels still compute the rest.
constexpr int64_t kBuckets = 8;
constexpr int64_t kMostBucketBytes = 25 << 20;

struct BucketMember {
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

int64_t total_of(std::span<const int64_t> counts) {
  int64_t sum = 0;
  for (const int64_t count : counts) sum += count;
  return sum;
}

std::vector<BucketMember> members_of(const SchedulerState& state) {
  std::vector<BucketMember> members;
  for (const Id id : state.live) {
    if (state.graph[id].op != Op::Collective) continue;
    const DType dtype = state.graph[id].dtype;
    CollectiveArg arg = CollectiveArg::of(state.graph.arg_list(id));
    const int64_t count = std::max(total_of(arg.sent), total_of(arg.received));
    members.push_back({id, std::move(arg), dtype, count * static_cast<int64_t>(size_of(dtype))});
  }
  std::ranges::sort(members, {}, [](const BucketMember& m) { return m.arg.sequence(); });
  return members;
}

}  // namespace

// A bucket starts with its last member. Until then none of its members may be needed: a collective
// that depends on another one is deeper, and ends the buckets of lesser depth.
std::vector<std::vector<Id>> collective_buckets(const SchedulerState& state) {
  const std::vector<BucketMember> members = members_of(state);
  using Key = decltype(members[0].key());
  std::map<Key, int64_t> small_bytes;
  for (const BucketMember& m : members)
    if (m.is_small()) small_bytes[m.key()] += m.bytes;
  struct Bucket {
    size_t last = 0;  // index into members
    int64_t bytes = 0;
    std::vector<Id> ids = {};
  };
  std::vector<Bucket> buckets;
  std::map<Key, size_t> open;  // index into buckets
  for (size_t i = 0; i < members.size(); ++i) {
    const BucketMember& m = members[i];
    std::erase_if(open, [&](const auto& entry) { return std::get<0>(entry.first) < m.arg.depth; });
    size_t at = buckets.size();
    if (m.is_small()) at = open.try_emplace(m.key(), at).first->second;
    if (at == buckets.size()) buckets.emplace_back();
    Bucket& bucket = buckets[at];
    bucket.last = i;
    bucket.bytes += m.bytes;
    bucket.ids.push_back(m.id);
    if (m.is_small() && bucket.bytes >= std::clamp(small_bytes.at(m.key()) / kBuckets, kLargeBytes,
                                                   kMostBucketBytes))
      open.erase(m.key());
  }
  std::ranges::sort(buckets, {}, &Bucket::last);
  std::vector<std::vector<Id>> made;
  for (Bucket& bucket : buckets) made.push_back(std::move(bucket.ids));
  return made;
}

}  // namespace plugrad::schedule
