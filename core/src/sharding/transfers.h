// Moves values between meshes of different processes, and from a mesh that not all processes are
// part of to all of them.
#pragma once

#include "sharding/collectives.h"

namespace plugrad::sharding {

class Transfers {
 public:
  /// `shape`: of the whole value that moves.
  Transfers(LocalBuilder& build, CollectivePlace place, CollectiveList& made,
            std::span<const int64_t> shape)
      : build_(build), place_(place), made_(made), whole_(shape.begin(), shape.end()) {}

  /// The parts of a value on `to`, of those on `from`, kNoId for other processes. On meshes of one
  /// shape each part moves to the same position; otherwise each process of `to` gets the first
  /// part, and the value is replicated.
  std::vector<Id> between(const Mesh& from, const Mesh& to, const std::vector<Id>& parts,
                          const Spec& spec, DType dtype);

  /// A replicated value, in every process on a device of its own.
  Id to_all(const Mesh& from, const std::vector<Id>& parts, DType dtype, uint32_t device);

 private:
  Id moved(const Mesh::Place& from, const Mesh::Place& to, const Mesh& mesh, Id part,
           std::span<const int64_t> shape, DType dtype);
  CollectiveArg arg_of(CollectiveKind kind, int64_t peer, std::vector<int64_t> ranks,
                       std::span<const int64_t> shape) const;

  LocalBuilder& build_;
  CollectivePlace place_;
  CollectiveList& made_;
  std::vector<int64_t> whole_;
};

}  // namespace plugrad::sharding
