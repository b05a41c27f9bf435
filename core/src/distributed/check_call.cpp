#include "distributed/check_call.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "distributed/control.h"

namespace plugrad::distributed {
namespace {

void check_group(const Call& call, std::uint32_t rank, std::uint32_t size) {
  const auto& group = call.group;
  const bool ascends = std::ranges::adjacent_find(group, std::greater_equal()) == group.end();
  require(ascends && std::ranges::binary_search(group, rank) && group.back() < size,
          "[{}] {}: the group [{}] must list ranks below {} in ascending order, this rank {} among "
          "them",
          name_of(call.kind), quoted_name(call.tensor), fmt::join(group, ", "), size, rank);
}

void set_pair(Call& call, std::uint32_t rank, std::uint32_t size) {
  require(call.peer < size && call.peer != rank,
          "[{}] {}: the other rank is {}, but must be another than this rank {} and below {}",
          name_of(call.kind), quoted_name(call.tensor), call.peer, rank, size);
  call.group = {std::min(rank, call.peer), std::max(rank, call.peer)};
}

void check_counts(const Call& call, const std::vector<std::int64_t>& counts, std::size_t wanted) {
  require(counts.size() == wanted, "[{}] {}: it takes {} counts, not {}", name_of(call.kind),
          quoted_name(call.tensor), wanted, counts.size());
  std::int64_t left = std::numeric_limits<std::int64_t>::max() / size_of(call.dtype);
  for (std::int64_t count : counts) {
    require(count >= 0 && count <= left, "[{}] {}: {} elements in one of the counts [{}]",
            name_of(call.kind), quoted_name(call.tensor), count, fmt::join(counts, ", "));
    left -= count;
  }
}

bool has_elements(const std::vector<std::int64_t>& counts) {
  return std::ranges::any_of(counts, [](std::int64_t count) { return count > 0; });
}

void check_memory(const Call& call, std::size_t self) {
  const std::vector<std::int64_t> own =
      call.counts.size() > 1 ? std::vector{call.counts[self]} : call.counts;
  const auto& to = call.kind == Kind::AllToAll        ? call.receive_counts
                   : call.kind == Kind::ReduceScatter ? own
                                                      : call.counts;
  const auto& from = call.kind == Kind::AllGather ? own : call.counts;
  const bool is_root = call.kind == Kind::Broadcast && call.group[self] == call.peer;
  const bool sends = call.kind == Kind::Broadcast ? is_root : call.kind != Kind::Receive;
  const bool receives = call.kind != Kind::Send && !is_root;
  require((!sends || call.send || !has_elements(from)) &&
              (!receives || call.receive || !has_elements(to)),
          "[{}] {}: no memory is given to send from or to receive in", name_of(call.kind),
          quoted_name(call.tensor));
}

}  // namespace

void check_call(Call& call, std::uint32_t rank, std::uint32_t size) {
  require_type(size_of(call.dtype) > 0, "[{}] {}: elements of {} have no memory",
               name_of(call.kind), quoted_name(call.tensor), name_of(call.dtype));
  const bool is_pair = call.kind == Kind::Send || call.kind == Kind::Receive;
  if (is_pair) set_pair(call, rank, size);
  check_group(call, rank, size);
  const std::size_t members = call.group.size();
  const bool has_parts = call.kind == Kind::ReduceScatter || call.kind == Kind::AllGather ||
                         call.kind == Kind::AllToAll;
  check_counts(call, call.counts, has_parts ? members : 1);
  const auto self =
      static_cast<std::size_t>(std::ranges::find(call.group, rank) - call.group.begin());
  if (call.kind == Kind::AllToAll) {
    check_counts(call, call.receive_counts, members);
    require(call.counts[self] == call.receive_counts[self],
            "[all-to-all] {}: this rank sends {} elements to itself, but receives {} of them",
            quoted_name(call.tensor), call.counts[self], call.receive_counts[self]);
  }
  require(call.kind != Kind::Broadcast || std::ranges::binary_search(call.group, call.peer),
          "[broadcast] {}: the root {} is not in the group [{}]", quoted_name(call.tensor),
          call.peer, fmt::join(call.group, ", "));
  check_memory(call, self);
}

void run_first(Backend& backend, std::vector<std::uint32_t> ranks) {
  backend.run({.kind = Kind::AllReduce,
               .dtype = DType::U8,
               .counts = {0},
               .group = std::move(ranks),
               .tensor = "distributed::init"});
}

}  // namespace plugrad::distributed
