// Moves the parts of a value from one spec to another: slices where every device has what it needs,
// and collectives elsewhere. Between devices of one process a collective is copies and reductions;
// between processes it is a Collective node, which the engine hands to a backend
// (distributed/backend.h).
//   all-reduce      partial add(data) -> [-]         every device gets the sum of all terms
//   reduce-scatter  partial add(data) -> [data]      every device gets its part of the sum
//   all-gather      [data] -> [-]                    every device gets all parts
//   all-to-all      [data, -] -> [-, data]           every device gets a slice of every part
// Values of a mesh that not all processes are part of move by these (transfers.h):
//   broadcast       every process gets the value of one
//   send, receive   a part moves to the process that has the same position of another mesh
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/collective_kind.h"
#include "sharding/local_builder.h"

namespace plugrad::sharding {

/// One movement of a reshard, as a user sees it.
struct Movement {
  CollectiveKind kind;
  AxisSet along;
  size_t from = 0, to = 0;  // dimensions: gathered, scattered into
};

/// The collectives that lead from one spec to another, in order; slices are not among them.
std::vector<Movement> movements(const Spec& from, const Spec& to);

/// The argument of a Collective node. Values are row-major; `received` and `sent` are elements by member
/// of the group: of each part that arrives (AllGather, AllToAll) or of each part of the source that
/// leaves (ReduceScatter, AllToAll). Of the others, `sent` is one number: the elements of the value.
/// The source of a Receive, and of a Broadcast in all processes but one, is a constant that is not
/// read; so is the result of a Send.
struct CollectiveArg {
  CollectiveKind kind = CollectiveKind::AllReduce;
  Op reduction = Op::Add;
  int64_t place = 0, order = 0;  // collectives of one process run in the order of both
  int64_t depth = 0;             // those of one depth do not depend on each other; negative: alone
  int64_t device = 0;            // of the source and the result
  int64_t peer = 0;              // the rank that broadcasts, or the other one of Send and Receive
  std::vector<int64_t> ranks = {};
  std::vector<int64_t> sent = {}, received = {};
  std::vector<int64_t> shape = {};  // of the result
  std::vector<int64_t> whole = {};  // shape of the sharded value, for messages

  std::pair<int64_t, int64_t> sequence() const { return {place, order}; }
  std::vector<int64_t> list() const;
  static CollectiveArg of(std::span<const int64_t> list);
};

/// Those of a step of a plan, whose scalars are their arguments one after another.
std::vector<CollectiveArg> args_of(std::span<const uint64_t> scalars);

/// The collectives between processes that were made for one plan.
struct CollectiveList {
  static constexpr int64_t kStride = 1 << 20;  // more than the positions of a mesh
  int64_t next_order = 0;  // grows with every collective, alike in all processes
  int64_t order_of(int64_t position) const { return next_order * kStride + position; }
  std::vector<Id> nodes;
  // None shares a bucket. Some processes do not see what moves between meshes of others, from which
  // each would choose its own buckets.
  bool are_alone = false;
};

/// Of the collectives that a reshard makes, alike in all processes.
struct CollectivePlace {
  int64_t place = 0;
  int64_t depth = 0;  // of the value that moves: the number of movements that it depends on
};

/// Adds the node of a collective between processes to `made`, with its place there.
Id add_collective(LocalBuilder& build, CollectiveList& made, const CollectivePlace& place,
                  CollectiveArg arg, Id source);

/// A constant element, for processes that would send nothing: empty values vanish from graphs, and
/// every process must take part.
Id filler(LocalBuilder& build, DType dtype);

class Collectives {
 public:
  Collectives(LocalBuilder& build, const Mesh& mesh, CollectivePlace place, CollectiveList& made)
      : build_(build), mesh_(mesh), place_(place), made_(made) {}

  /// Parts by position, kNoId for those of other processes. `shape`: of the whole value.
  std::vector<Id> reshard(std::vector<Id> parts, Spec from, const Spec& to,
                          std::span<const int64_t> shape);

 private:
  using Parts = std::vector<Id>;
  struct Group {
    std::vector<uint32_t> members;  // positions
    std::vector<uint32_t> here;     // indices into members of this process
    std::vector<int64_t> ranks;     // distinct, ascending
    bool is_local() const { return ranks.size() == 1; }
  };
  template <class Run>
  Parts in_groups(const Parts& parts, AxisSet along, const Run& run);
  Parts all_reduce(const Parts& parts, AxisSet along, Op reduction);
  Parts all_gather(const Parts& parts, AxisSet along, size_t d, const Spec& from,
                   std::span<const int64_t> shape);
  Parts reduce_scatter(const Parts& parts, AxisSet along, size_t d, Op reduction, const Spec& to,
                       std::span<const int64_t> shape);
  Parts all_to_all(const Parts& parts, AxisSet along, size_t d, size_t e, const Spec& from,
                   const Spec& to, std::span<const int64_t> shape);
  Parts sliced(const Parts& parts, const Spec& from, const Spec& to,
               std::span<const int64_t> shape);
  void store(Parts& parts);
  Parts as_terms(const Parts& parts, AxisSet along, Op reduction);
  void reduce_locally(const Group& group, const Parts& parts, Op reduction, Parts& out);
  Id reduced_on(const Group& group, const Parts& parts, Op reduction, uint32_t device);
  Part within(uint32_t position, AxisSet outer, AxisSet all, int64_t size) const;
  static std::vector<int64_t> stacked(std::vector<int64_t> part, const Group& group);
  bool ends_block(const Group& group, uint32_t member) const;
  Id filler(Id like);
  Id collective(CollectiveArg arg, Id source, uint32_t device);

  LocalBuilder& build_;
  const Mesh& mesh_;
  CollectivePlace place_;
  CollectiveList& made_;
  std::vector<int64_t> whole_;  // shape of the value that moves
};

}  // namespace plugrad::sharding
